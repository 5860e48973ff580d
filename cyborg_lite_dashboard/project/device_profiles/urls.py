# SPDX-License-Identifier: Apache-2.0
"""Addresses of the panel."""

from django.urls import path

from cyborg_lite_dashboard.project.device_profiles import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('<uuid:uuid>/', views.DetailView.as_view(), name='detail'),
    path('<uuid:uuid>/explain/', views.ExplainView.as_view(), name='explain'),
]
