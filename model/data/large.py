#!/usr/bin/env python3
"""Builds the pictures that the upscaler is trained on: vector sources at 512x512.

    python3 large.py choose --data ../work/full --list ../work/large.tsv
    node rasterise.js --size 512 --list ../work/large.tsv --out ../work/raw512/0
    python3 large.py pack --data ../work/full --raw ../work/raw512 --out ../work/ds512

choose picks pictures from a data set of build.py; pack writes what was drawn:

    pictures.bin   the pictures as WebP with alpha, one after another
    offsets.npy    int64, where each begins, and the end of the last
    meta.jsonl.gz  one line for each: set, name, src, held

held marks the pictures that are kept out of training, one name in ten. It goes
by name and not by picture: sets draw the same thing alike, and a name in both
parts would flatter the score.
"""

import argparse
import hashlib
import os
import zlib

from packed import WORK, read_drawn, read_meta, report, webp, write_packed

SIZE = 512

# How many pictures of each set: many colours and gradients first, some
# silhouettes and line icons.
COUNTS = {
    'fluent-emoji': 500,
    'fluent-emoji-flat': 400,
    'noto': 550,
    'twemoji': 350,
    'openclipart': 500,
    'streamline-ultimate-color': 100,
    'streamline-kameleon-color': 60,
    'streamline-stickies-color': 40,
    'flat-color-icons': 50,
    'game-icons': 50,
}


def place(line):
    """Where a picture stands in the order of choice: a hash, so that the
    choice is spread over the set and the same in every run."""
    return hashlib.sha256(f'{line["set"]}/{line["src"]}'.encode()).digest()


def is_held(name):
    return zlib.crc32(name.encode()) % 10 == 0


def choose(lines):
    """The chosen lines: of each set the first ones by place, each name once."""
    chosen = []
    for source, count in COUNTS.items():
        names = set()
        for line in sorted((line for line in lines if line['set'] == source), key=place):
            if len(names) == count:
                break
            if line['name'] not in names:
                names.add(line['name'])
                chosen.append(line)
    return chosen


def run_choose(arguments):
    chosen = choose(read_meta(arguments.data))
    with open(arguments.list, 'w', encoding='utf-8') as file:
        for line in chosen:
            file.write(f'{line["set"]}\t{line["src"]}\n')
    print(f'{len(chosen)} pictures chosen')


def run_pack(arguments):
    chosen = choose(read_meta(arguments.data))
    drawn = {(record['set'], record['name']): pixels
             for record, pixels in read_drawn(arguments.raw, SIZE, COUNTS)}
    missing = [line['src'] for line in chosen if (line['set'], line['src']) not in drawn]
    if missing:
        raise SystemExit(f'not drawn: {", ".join(missing)}')
    lines, files = [], []
    for line in chosen:
        lines.append({
            'set': line['set'],
            'name': line['name'],
            'src': line['src'],
            'held': is_held(line['name']),
        })
        files.append(webp(drawn[line['set'], line['src']], quality=90, alpha_quality=90))
    write_packed(arguments.out, 'pictures.bin', files, lines)
    report(lines, files)
    print(sum(line['held'] for line in lines), 'held')


def parse_arguments():
    parser = argparse.ArgumentParser(description='Builds the 512x512 pictures.')
    parser.add_argument('action', choices=('choose', 'pack'))
    parser.add_argument('--data', default=os.path.join(WORK, 'full'),
                        help='data set of build.py to choose from')
    parser.add_argument('--list', default=os.path.join(WORK, 'large.tsv'),
                        help='list to write for rasterise.js')
    parser.add_argument('--raw', default=os.path.join(WORK, 'raw512'),
                        help='folder with the output of rasterise.js')
    parser.add_argument('--out', default=os.path.join(WORK, 'ds512'), help='folder to write')
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.action == 'choose':
        run_choose(arguments)
    else:
        run_pack(arguments)


if __name__ == '__main__':
    main()
