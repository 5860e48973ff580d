# SPDX-License-Identifier: Apache-2.0
"""Configuration files of the services of a real OpenStack."""

from typing import Final

AUTH: Final = """
auth_type = password
auth_url = {url}
username = {user}
password = {password}
user_domain_id = default
project_id = {project}
"""

PLACEMENT: Final = """
[api]
auth_strategy = keystone
[placement_database]
connection = {connection}
[keystone_authtoken]
www_authenticate_uri = {url}
{auth}
"""

NOVA: Final = """
[DEFAULT]
host = {host}
my_ip = 127.0.0.1
transport_url = {transport_url}
state_path = {directory}/{name}-state
log_file = {directory}/{name}.log
compute_driver = fake.FakeDriver
arq_binding_timeout = 60
periodic_fuzzy_delay = 0
report_interval = 2
service_down_time = 20
shelved_offload_time = 0
[api]
auth_strategy = keystone
[api_database]
connection = {api_database}
[database]
connection = {database}
[conductor]
workers = 1
[quota]
instances = -1
cores = -1
ram = -1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 2
[cache]
enabled = false
[vnc]
enabled = false
[spice]
enabled = false
[oslo_concurrency]
lock_path = {directory}/locks
[oslo_messaging_rabbit]
rabbit_quorum_queue = false
[keystone_authtoken]
www_authenticate_uri = {url}
{auth}
[service_user]
send_service_user_token = true
{auth}
[placement]
{auth}
[cyborg]
{auth}
[glance]
{auth}
[neutron]
{auth}
[cinder]
{auth}
"""

NOVA_API: Final = """
import sys
sys.argv = ['nova-api']
from nova.wsgi.osapi_compute import application
import waitress
waitress.serve(application, listen='127.0.0.1:{port}', threads=8)
"""

CYBORG: Final = """
[DEFAULT]
host = {host}
transport_url = {transport_url}
[api]
host = 127.0.0.1
port = {port}
[database]
connection = {connection}
[conductor]
job_lease = 3
agent_timeout = 20
bind_deadline = 40
[agent]
enabled_drivers = {drivers}
discovery_interval = 1
fingerprint_interval = 1
removal_scans = 1
heartbeat_interval = 1
state_path = {directory}/agent-{host}
image_directory = {directory}/agent-{host}/images
nova_config_files = {directory}/nova-of-{host}.conf
[cards_driver]
folder = {directory}/cards-{host}
[keystone_authtoken]
www_authenticate_uri = {url}
service_token_roles_required = true
{auth}
[placement]
{auth}
[nova]
{auth}
[oslo_concurrency]
lock_path = {directory}/locks
"""
