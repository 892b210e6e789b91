#!/usr/bin/env bash
# Builds everything under model/work from the packages, with two processes:
#
#   build.sh [VOCABULARY]
#
# VOCABULARY is a folder with a vocab.json and a glove_i8.npy; without it, the
# words are those of the weights in the program. PYTHON names a Python with
# numpy and a Pillow that writes WebP.
set -euo pipefail

python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$here/../work
if [ $# -gt 0 ]; then
	vocabulary=$(cd "$1" && pwd)
else
	vocabulary=$work/vocabulary
	"$python" "$here/../shipped.py" words "$vocabulary"
fi
emoji=fluent-3d,fluent-emoji,fluent-emoji-flat,noto,twemoji,noto-v1,emojione,fxemoji

# rasterise draws into a new folder, with the arguments given.
rasterise() {
	local directory=$1 first second
	shift
	rm -rf "$directory"
	node "$here/rasterise.js" --out "$directory/0" --shard 0/2 "$@" &
	first=$!
	node "$here/rasterise.js" --out "$directory/1" --shard 1/2 "$@" &
	second=$!
	wait "$first"
	wait "$second"
}

# build makes a 128x128 data set with the arguments given.
build() {
	"$python" "$here/build.py" \
		--vocabulary "$vocabulary/vocab.json" --vectors "$vocabulary/glove_i8.npy" "$@"
}

"$here/fetch.sh"
rasterise "$work/raw128" --size 128
build --out "$work/full"
build --out "$work/ds" --sets "$emoji"
"$python" "$here/large.py" choose
rasterise "$work/raw512" --size 512 --list "$work/large.tsv"
"$python" "$here/large.py" pack
"$python" "$here/notice.py"
