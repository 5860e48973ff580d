#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The DevStack plugin: enable_plugin cyborg-lite <repository>
#
# The services are cyborg-lite-api, cyborg-lite-conductor and cyborg-lite-agent. A compute
# node of a multi-node cloud runs the agent only:
#
#   disable_service cyborg-lite-api cyborg-lite-conductor
#   SERVICE_HOST, RABBIT_HOST       the address of the controller
#   CYBORG_LITE_AGENT_KEY           on the controller: cyborg-lite-manage agent key HOST

function install_cyborg_lite {
    setup_develop "$CYBORG_LITE_DIR"
    if is_service_enabled cyborg-lite-api; then
        pip_install uwsgi
    fi
}

function configure_cyborg_lite {
    sudo install -d -o "$STACK_USER" "$CYBORG_LITE_CONF_DIR" "$CYBORG_LITE_STATE_DIR"
    rm -f "$CYBORG_LITE_CONF"
    iniset "$CYBORG_LITE_CONF" DEFAULT debug "$ENABLE_DEBUG_LOG_LEVEL"
    iniset_rpc_backend cyborg_lite "$CYBORG_LITE_CONF"
    iniset "$CYBORG_LITE_CONF" oslo_concurrency lock_path "$CYBORG_LITE_STATE_DIR/locks"
    configure_cyborg_lite_service_sections
    if is_service_enabled cyborg-lite-agent; then
        iniset "$CYBORG_LITE_CONF" agent enabled_drivers "$CYBORG_LITE_DRIVERS"
        iniset "$CYBORG_LITE_CONF" agent state_path "$CYBORG_LITE_STATE_DIR"
    fi
    if is_service_enabled cyborg-lite-conductor; then
        iniset "$CYBORG_LITE_CONF" database connection \
            "$(database_connection_url cyborg_lite)"
    fi
    if is_service_enabled cyborg-lite-api; then
        write_uwsgi_config "$CYBORG_LITE_UWSGI_CONF" "$CYBORG_LITE_UWSGI" /accelerator "" \
            cyborg-lite-api
    fi
}

# The API validates tokens, the conductor calls Placement and Nova, and the agent reads
# bitstreams from Glance.
function configure_cyborg_lite_service_sections {
    local section sections=(glance)
    if is_service_enabled cyborg-lite-api; then
        configure_keystone_authtoken_middleware "$CYBORG_LITE_CONF" cyborg_lite
    fi
    if is_service_enabled cyborg-lite-conductor; then
        sections+=(placement nova)
    fi
    for section in "${sections[@]}"; do
        configure_keystone_authtoken_middleware "$CYBORG_LITE_CONF" cyborg_lite "$section"
        iniset "$CYBORG_LITE_CONF" "$section" region_name "$REGION_NAME"
    done
}

# A host with a conductor derives all keys from its secret. A further compute node gets its
# key in local.conf: CYBORG_LITE_AGENT_KEY=$(cyborg-lite-manage agent key HOST).
function configure_cyborg_lite_keys {
    local manage=("$CYBORG_LITE_BIN_DIR/cyborg-lite-manage" --config-file "$CYBORG_LITE_CONF")
    if is_service_enabled cyborg-lite-conductor; then
        iniset "$CYBORG_LITE_CONF" conductor agent_key_secret_file \
            "$CYBORG_LITE_CONF_DIR/agent-key-secret"
        "${manage[@]}" agent secret
        CYBORG_LITE_API_KEY=$("${manage[@]}" agent api-key)
        CYBORG_LITE_AGENT_KEY=$("${manage[@]}" agent key "$(hostname)")
    fi
    if is_service_enabled cyborg-lite-api; then
        iniset "$CYBORG_LITE_CONF" api key_file "$CYBORG_LITE_CONF_DIR/api.key"
        write_cyborg_lite_key api.key CYBORG_LITE_API_KEY
    fi
    if is_service_enabled cyborg-lite-agent; then
        iniset "$CYBORG_LITE_CONF" agent key_file "$CYBORG_LITE_CONF_DIR/agent.key"
        write_cyborg_lite_key agent.key CYBORG_LITE_AGENT_KEY
    fi
}

# Write the value of a variable to a file that only the service can read.
function write_cyborg_lite_key {
    local file=$1 variable=$2
    if [[ -z "${!variable}" ]]; then
        die $LINENO "$variable is not set. Take it from cyborg-lite-manage on the controller."
    fi
    install -m 0600 /dev/stdin "$CYBORG_LITE_CONF_DIR/$file" <<< "${!variable}"
}

# Bind and unbind require a service token, which Nova sends only with this option.
function configure_nova_for_cyborg_lite {
    local file
    for file in "$NOVA_CONF" "$NOVA_CPU_CONF"; do
        if [[ -f "$file" ]]; then
            iniset "$file" service_user send_service_user_token True
            configure_keystone_authtoken_middleware "$file" nova service_user
        fi
    done
}

function create_cyborg_lite_accounts {
    create_service_user cyborg_lite admin
    local url="$SERVICE_PROTOCOL://$SERVICE_HOST/accelerator/v2"
    get_or_create_service cyborg_lite accelerator "Accelerators"
    get_or_create_endpoint accelerator "$REGION_NAME" "$url" "$url"
}

function init_cyborg_lite {
    recreate_database cyborg_lite
    "$CYBORG_LITE_BIN_DIR/cyborg-lite-dbsync" --config-file "$CYBORG_LITE_CONF" upgrade
}

# run_process starts only enabled services.
function start_cyborg_lite {
    run_process cyborg-lite-conductor \
        "$CYBORG_LITE_BIN_DIR/cyborg-lite-conductor --config-file $CYBORG_LITE_CONF"
    run_process cyborg-lite-api "$CYBORG_LITE_BIN_DIR/uwsgi --ini $CYBORG_LITE_UWSGI_CONF"
    run_process cyborg-lite-agent \
        "$CYBORG_LITE_BIN_DIR/cyborg-lite-agent --config-file $CYBORG_LITE_CONF"
}

function stop_cyborg_lite {
    stop_process cyborg-lite-agent
    stop_process cyborg-lite-api
    stop_process cyborg-lite-conductor
}

# The options of cyborg-tempest-plugin. The service enforces the new policy defaults.
function configure_tempest_for_cyborg_lite {
    iniset "$TEMPEST_CONFIG" service_available cyborg True
    iniset "$TEMPEST_CONFIG" cyborg_policy enforce_new_defaults True
}

function is_any_cyborg_lite_service_enabled {
    is_service_enabled cyborg-lite-api cyborg-lite-conductor cyborg-lite-agent
}

CYBORG_LITE_BIN_DIR=$(get_python_exec_prefix)

if ! is_any_cyborg_lite_service_enabled; then
    return 0
fi

case "$1:${2:-}" in
    stack:install)
        install_cyborg_lite
        ;;
    stack:post-config)
        configure_cyborg_lite
        configure_cyborg_lite_keys
        configure_nova_for_cyborg_lite
        if is_service_enabled cyborg-lite-api; then
            create_cyborg_lite_accounts
        fi
        if is_service_enabled cyborg-lite-conductor; then
            init_cyborg_lite
        fi
        ;;
    stack:extra)
        start_cyborg_lite
        ;;
    stack:test-config)
        if is_service_enabled tempest; then
            configure_tempest_for_cyborg_lite
        fi
        ;;
    unstack:*)
        stop_cyborg_lite
        ;;
    clean:*)
        sudo rm -rf "$CYBORG_LITE_CONF_DIR" "$CYBORG_LITE_STATE_DIR"
        if is_service_enabled cyborg-lite-api; then
            remove_uwsgi_config "$CYBORG_LITE_UWSGI_CONF" cyborg-lite-api
        fi
        ;;
esac
