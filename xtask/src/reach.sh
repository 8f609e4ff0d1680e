# reach.sh HOLD UID GID [--cover DIRECTORY --keep PATH...]... -- COMMAND...
# Runs in a mount namespace of its own. For each directory that the user may not pass, an empty one that everybody may
# pass is laid over it, with the kept paths of the old one at their old places. Then COMMAND runs as the user.
# Nothing of this is seen outside, and nothing on the disk is changed but the empty directory HOLD.
hold=$1 uid=$2 gid=$3
shift 3
mkdir -p "$hold"
n=0 cover='' kept=()

lay_over() {
  [ -n "$cover" ] || return 0
  mount -t tmpfs -o mode=0755,size=1m cover "$cover"
  local i
  for i in "${!kept[@]}"; do
    # A path inside an earlier one is there already.
    [ -e "${kept[$i]}" ] && continue
    mkdir -p "${kept[$i]}"
    mount --rbind "$hold/$i" "${kept[$i]}"
  done
  kept=()
}

mount -t tmpfs -o mode=0700,size=1m hold "$hold"
while [ "$1" != -- ]; do
  case $1 in
    --cover) lay_over; cover=$2 ;;
    --keep)
      n=$((n + 1)); kept[n]=$2
      mkdir "$hold/$n"; mount --rbind "$2" "$hold/$n" ;;
  esac
  shift 2
done
shift
lay_over
umount -R -l "$hold"
exec setpriv --reuid "$uid" --regid "$gid" --init-groups -- "$@"
