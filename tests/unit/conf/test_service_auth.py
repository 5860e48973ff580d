# SPDX-License-Identifier: Apache-2.0
"""Options that the sections of all remote services share."""

from oslo_config import cfg

from cyborg_lite.conf import service_auth


def _by_name() -> dict[str, cfg.Opt]:
    options = service_auth.options('compute', 'e.g. http://controller/compute')
    return {option.dest: option for option in options}


def test_options_sets_defaults_of_this_service() -> None:
    options = _by_name()
    assert options['service_type'].default == 'compute'
    assert options['valid_interfaces'].default == ['internal', 'public']
    assert (options['timeout'].default, options['connect_retries'].default) == (10, 1)


def test_options_help_shows_example_of_url() -> None:
    text = _by_name()['endpoint_override'].help or ''
    assert 'http://controller/compute' in text
    assert '{form}' not in text


def test_options_leave_defaults_of_other_sections() -> None:
    image = service_auth.options('image', 'e.g. http://controller/image')
    _by_name()
    (service_type,) = (o for o in image if o.dest == 'service_type')
    assert service_type.default == 'image'


def test_plugin_options_are_not_registered_options() -> None:
    """A plugin registers its options itself; a second definition would conflict."""
    plugin_names = {option.dest for option in service_auth.PLUGIN_OPTIONS}
    assert 'password' in plugin_names
    assert 'password' not in _by_name()
