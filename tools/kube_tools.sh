#!/bin/sh
# Builds the programs of a real Kubernetes control plane from the tool modules beside this script (tools/<module>/go.mod, pinned with
# go.sum), each module into a folder named after its hash below ${GRYVIA_KUBE_TOOLS:-~/.cache/gryvia/kube-tools}. What is built
# already costs nothing. Prints "program path" lines; with --where it builds nothing and fails when a program is missing.
# The programs are linked without cgo, so that no C compiler is needed and none of them depends on the machine's libraries.
set -eu
cd "$(dirname "$0")"
ROOT="${GRYVIA_KUBE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/gryvia/kube-tools}"

fail() { echo "kube-tools: $1" >&2; exit 1; }

# module, package, program
PROGRAMS="
etcd go.etcd.io/etcd/server/v3 etcd
kubernetes k8s.io/kubernetes/cmd/kube-apiserver kube-apiserver
kubernetes k8s.io/kubernetes/cmd/kube-controller-manager kube-controller-manager
kubernetes k8s.io/kubernetes/cmd/kube-scheduler kube-scheduler
"

folder_of() { echo "$ROOT/$1-$(cat "$1/go.mod" "$1/go.sum" | cksum | tr ' ' '-')"; }

# Without these a Kubernetes program calls itself v0.0.0, and clients judge its age by that.
version_flags() {
    version="$(sed -n 's/^[[:space:]]*k8s\.io\/kubernetes \(v[0-9.]*\).*/\1/p' kubernetes/go.mod | head -n 1)"
    at="k8s.io/component-base/version"
    echo "-X $at.gitVersion=$version -X $at.gitMajor=$(echo "$version" | cut -d. -f1 | tr -d v)" \
        "-X $at.gitMinor=$(echo "$version" | cut -d. -f2) -X $at.gitTreeState=clean"
}

build() {
    command -v go >/dev/null 2>&1 ||
        fail "Go is needed to build $3; install Go 1.26 or newer from https://go.dev/dl and put it on the PATH"
    number=$(echo "$PROGRAMS" | sed -n '/./p' | grep -n " $3\$" | cut -d: -f1)
    echo "kube-tools: building $3, $number of $(echo "$PROGRAMS" | grep -c .); about 8 minutes for all the first time" >&2
    mkdir -p "$folder"
    log="$folder/.$3.$$.log"
    : >"$log"
    # Go says which module it gets and which package it compiles; a line of it every half minute is enough for a person.
    (while sleep 30 >/dev/null 2>&1; do echo "kube-tools: $3: $(wc -l <"$log" | tr -d ' ') modules and packages done" >&2; done) &
    reporter=$!
    trap 'kill $reporter 2>/dev/null || true' EXIT
    flags="-s -w"
    [ "$1" = kubernetes ] && flags="$flags $(version_flags)"
    (cd "$1" && CGO_ENABLED=0 nice -n 15 go build -v -ldflags="$flags" -o "$folder/.$3.$$" "$2") 2>"$log" || {
        tail -n 15 "$log" >&2
        fail "could not build $3; Go 1.26 or newer and, the first time, a Go module proxy are needed ($(go version))"
    }
    kill $reporter 2>/dev/null || true
    trap - EXIT
    rm -f "$log"
    mv "$folder/.$3.$$" "$folder/$3"
}

echo "$PROGRAMS" | while read -r module package program; do
    [ -n "$module" ] || continue
    folder="$(folder_of "$module")"
    if [ ! -x "$folder/$program" ]; then
        [ "${1:-}" != --where ] || fail "$program is not built; run: make kube-tools"
        build "$module" "$package" "$program"
    fi
    echo "$program $folder/$program"
done
