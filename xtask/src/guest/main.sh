#!/usr/bin/sh
# Runs the scenarios in /scenarios, and says on the second serial line what came out.
export PATH=/usr/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 pts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t cgroup2 -o nsdelegate cgroup /sys/fs/cgroup
chmod 666 /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty
ip link set lo up
for module in /modules/*; do
    case $module in
        *.xz) xzcat "$module" > /module && insmod /module ;;
        *) insmod "$module" ;;
    esac
done

say() {
    echo "$*" > /dev/ttyS1
}

CONTROLLERS='+memory +pids +cpu'

# Gives a group to a user, as a service manager does.
give() {
    chown "$1" "$2" "$2/cgroup.procs" "$2/cgroup.threads" "$2/cgroup.subtree_control"
}

# scenario NAME USER DELEGATED ALONE GROUPS
scenario() {
    say "guest: begin $1"
    top=/sys/fs/cgroup/$1
    mkdir "$top"
    if [ "$3$4" != nono ]; then
        echo "$CONTROLLERS" > /sys/fs/cgroup/cgroup.subtree_control
        echo "$CONTROLLERS" > "$top/cgroup.subtree_control"
    fi
    [ "$3" = no ] || give "$2" "$top"
    number=0
    while read -r program filter; do
        number=$((number + 1))
        group=$top/session-$number
        mkdir "$group"
        [ "$3" = no ] || give "$2" "$group"
        other=
        if [ "$4" = no ]; then
            sleep 100000 &
            other=$!
            echo $other > "$group/cgroup.procs"
        fi
        run "$group" "$2" "$5" "$([ "$4" = no ] || echo "$top")" "$program" "$filter"
        [ -z "$other" ] || kill $other
    done < /programs
    # The test program of the kernel itself may have moved, and does not go back.
    left=$(find /sys/fs/cgroup -path '*/fumehood/*' -type d ! -name '*-0-supervisor')
    say "test no_group_is_left ... ${left:-ok}"
    say "guest: end"
}

# run GROUP USER GROUPS SCOPES PROGRAM FILTER
run() {
    (
        echo 0 > "$1/cgroup.procs"
        export FUMEHOOD_TEST_GROUPS=$3 TMPDIR=/tmp RUST_BACKTRACE=0
        [ -z "$4" ] || export FUMEHOOD_TEST_SCOPES=$4
        exec su -p "$2" -s /usr/bin/sh -c "cd /tmp && HOME=/tmp exec $5 --test-threads=1 $6"
    ) < /dev/null > /dev/ttyS1 2> /dev/console
}

. /scenarios
say "guest: done"
sync
poweroff -f
