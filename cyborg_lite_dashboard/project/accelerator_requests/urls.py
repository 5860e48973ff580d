# SPDX-License-Identifier: Apache-2.0
"""Addresses of the panel."""

from django.urls import path

from cyborg_lite_dashboard.project.accelerator_requests import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('<uuid:uuid>/', views.DetailView.as_view(), name='detail'),
]
