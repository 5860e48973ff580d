# Completion of the commands of cyborg_lite, for bash. For zsh run first:
#   autoload -U +X bashcompinit && bashcompinit
# Written by `tox run -e gencommands`.
_cyborg_lite() {
    local path="$1" word words
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $word == -* ]] || path="$path $word"
    done
    case "$path" in
    "cyborg-lite-agent") words="discover ready acknowledge --config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-agent discover"*) words="--config-dir --config-file --debug --explain --format --help --log-config-append --log-date-format --log-dir --log-file --nodebug --noexplain --nouse-journal --nouse-json --nouse-syslog --sysfs-root --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-agent ready"*) words="--config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-agent acknowledge"*) words="--config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-api"*) words="--config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-conductor"*) words="--config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-controller"*) words="--config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-dbsync") words="upgrade migrate-profiles online_data_migrations current history create --config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-dbsync upgrade"*) words="--contract --expand --help --json" ;;
    "cyborg-lite-dbsync migrate-profiles"*) words="--dry-run --help --json --record --undo" ;;
    "cyborg-lite-dbsync online_data_migrations"*) words="--help --json --max-count" ;;
    "cyborg-lite-dbsync current"*) words="--help --json" ;;
    "cyborg-lite-dbsync history"*) words="--help --json" ;;
    "cyborg-lite-dbsync create"*) words="--help --json" ;;
    "cyborg-lite-manage") words="audit recover placement ownership agent topology init install-units convert-config import --config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-manage audit"*) words="--apply --format --grace --help --json" ;;
    "cyborg-lite-manage recover"*) words="--accept --apply --format --help --json --plan" ;;
    "cyborg-lite-manage placement") words="audit --help" ;;
    "cyborg-lite-manage placement audit"*) words="--apply --format --help --host --json --prune" ;;
    "cyborg-lite-manage ownership"*) words="--format --help --host --json" ;;
    "cyborg-lite-manage agent") words="forget-identity secret add-secret drop-secret revoke-key key api-key --help" ;;
    "cyborg-lite-manage agent forget-identity"*) words="--help --json" ;;
    "cyborg-lite-manage agent secret"*) words="--help --json" ;;
    "cyborg-lite-manage agent add-secret"*) words="--help --json" ;;
    "cyborg-lite-manage agent drop-secret"*) words="--help --json" ;;
    "cyborg-lite-manage agent revoke-key"*) words="--help --json" ;;
    "cyborg-lite-manage agent key"*) words="--help --json" ;;
    "cyborg-lite-manage agent api-key"*) words="--help --json" ;;
    "cyborg-lite-manage topology"*) words="--format --help --json" ;;
    "cyborg-lite-manage init"*) words="--auth-url --connection --enabled-drivers --help --json --no-check --output --password --project-domain-name --project-name --role --transport-url --user-domain-name --username" ;;
    "cyborg-lite-manage install-units"*) words="--help --json --root" ;;
    "cyborg-lite-manage convert-config"*) words="--help --json --output" ;;
    "cyborg-lite-manage import"*) words="--dry-run --format --from --help --json --record --undo" ;;
    "cyborg-lite-standalone"*) words="--config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --notrust-network --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --trust-network --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-status") words="show conductor upgrade --config-dir --config-file --debug --help --log-config-append --log-date-format --log-dir --log-file --nodebug --nouse-journal --nouse-json --nouse-syslog --syslog-log-facility --use-journal --use-json --use-syslog --version" ;;
    "cyborg-lite-status show"*) words="--help --json" ;;
    "cyborg-lite-status conductor"*) words="--help --json" ;;
    "cyborg-lite-status upgrade"*) words="--help --json" ;;
    *) words="" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _cyborg_lite \
    cyborg-lite-agent cyborg-lite-api cyborg-lite-conductor cyborg-lite-controller cyborg-lite-dbsync cyborg-lite-manage cyborg-lite-standalone cyborg-lite-status
