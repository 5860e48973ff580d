#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The DevStack plugin: enable_plugin cyborg-lite <repository>

function install_cyborg_lite {
    setup_develop "$CYBORG_LITE_DIR"
    pip_install uwsgi
}

function configure_cyborg_lite {
    sudo install -d -o "$STACK_USER" "$CYBORG_LITE_CONF_DIR" "$CYBORG_LITE_STATE_DIR"
    rm -f "$CYBORG_LITE_CONF"
    iniset "$CYBORG_LITE_CONF" DEFAULT debug "$ENABLE_DEBUG_LOG_LEVEL"
    iniset_rpc_backend cyborg_lite "$CYBORG_LITE_CONF"
    iniset "$CYBORG_LITE_CONF" oslo_concurrency lock_path "$CYBORG_LITE_STATE_DIR/locks"
    iniset "$CYBORG_LITE_CONF" agent enabled_drivers "$CYBORG_LITE_DRIVERS"
    iniset "$CYBORG_LITE_CONF" agent state_path "$CYBORG_LITE_STATE_DIR"
    iniset "$CYBORG_LITE_CONF" database connection \
        "$(database_connection_url cyborg_lite)"
    configure_keystone_authtoken_middleware "$CYBORG_LITE_CONF" cyborg_lite
    local section
    for section in placement nova glance; do
        configure_keystone_authtoken_middleware "$CYBORG_LITE_CONF" cyborg_lite "$section"
        iniset "$CYBORG_LITE_CONF" "$section" region_name "$REGION_NAME"
    done
    write_uwsgi_config "$CYBORG_LITE_UWSGI_CONF" "$CYBORG_LITE_UWSGI" /accelerator "" \
        cyborg-lite-api
}

# A host with a conductor derives all keys from its secret. A further compute node gets its
# key in local.conf: CYBORG_LITE_AGENT_KEY=$(cyborg-lite-manage agent key HOST).
function configure_cyborg_lite_keys {
    local manage=("$CYBORG_LITE_BIN_DIR/cyborg-lite-manage" --config-file "$CYBORG_LITE_CONF")
    iniset "$CYBORG_LITE_CONF" conductor agent_key_secret_file \
        "$CYBORG_LITE_CONF_DIR/agent-key-secret"
    iniset "$CYBORG_LITE_CONF" api key_file "$CYBORG_LITE_CONF_DIR/api.key"
    iniset "$CYBORG_LITE_CONF" agent key_file "$CYBORG_LITE_CONF_DIR/agent.key"
    if is_service_enabled cyborg-lite-conductor; then
        "${manage[@]}" agent secret
        write_cyborg_lite_key api.key "$("${manage[@]}" agent api-key)"
        CYBORG_LITE_AGENT_KEY=$("${manage[@]}" agent key "$(hostname)")
    fi
    write_cyborg_lite_key agent.key "$CYBORG_LITE_AGENT_KEY"
}

function write_cyborg_lite_key {
    install -m 0600 /dev/stdin "$CYBORG_LITE_CONF_DIR/$1" <<< "$2"
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

function start_cyborg_lite {
    run_process cyborg-lite-api "$(which uwsgi) --ini $CYBORG_LITE_UWSGI_CONF"
    run_process cyborg-lite-conductor \
        "$CYBORG_LITE_BIN_DIR/cyborg-lite-conductor --config-file $CYBORG_LITE_CONF"
    run_process cyborg-lite-agent \
        "$CYBORG_LITE_BIN_DIR/cyborg-lite-agent --config-file $CYBORG_LITE_CONF"
}

function stop_cyborg_lite {
    stop_process cyborg-lite-agent
    stop_process cyborg-lite-api
    stop_process cyborg-lite-conductor
}

CYBORG_LITE_BIN_DIR=$(get_python_exec_prefix)

case "$1:${2:-}" in
    stack:install)
        install_cyborg_lite
        ;;
    stack:post-config)
        configure_cyborg_lite
        configure_cyborg_lite_keys
        configure_nova_for_cyborg_lite
        if is_service_enabled key; then
            create_cyborg_lite_accounts
        fi
        if is_service_enabled cyborg-lite-conductor; then
            init_cyborg_lite
        fi
        ;;
    stack:extra)
        start_cyborg_lite
        ;;
    unstack:*)
        stop_cyborg_lite
        ;;
    clean:*)
        sudo rm -rf "$CYBORG_LITE_CONF_DIR" "$CYBORG_LITE_STATE_DIR"
        remove_uwsgi_config "$CYBORG_LITE_UWSGI_CONF" cyborg-lite-api
        ;;
esac
