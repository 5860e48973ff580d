# SPDX-License-Identifier: Apache-2.0
"""Addresses of the panel."""

from django.urls import path

from cyborg_lite_dashboard.admin.accelerator_devices import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('<uuid:uuid>/', views.DetailView.as_view(), name='detail'),
    path('<uuid:uuid>/status/', views.StatusView.as_view(), name='status'),
    path(
        'hosts/<str:hostname>/topology.svg',
        views.TopologyView.as_view(),
        name='topology',
    ),
]
