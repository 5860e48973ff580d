# SPDX-License-Identifier: Apache-2.0
"""Addresses of the panel."""

from django.urls import path

from cyborg_lite_dashboard.admin.device_profiles import views
from cyborg_lite_dashboard.project.device_profiles.views import DetailView, ExplainView

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('create/', views.CreateView.as_view(), name='create'),
    path('<uuid:uuid>/', DetailView.as_view(), name='detail'),
    path('<uuid:uuid>/edit/', views.EditView.as_view(), name='edit'),
    path('<uuid:uuid>/explain/', ExplainView.as_view(), name='explain'),
]
