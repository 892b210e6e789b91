#!/usr/bin/env python3
"""Builds the data set of the picture model: 128x128 RGBA sprites with captions.

    python3 build.py --out ../work/ds --vocabulary vocab.json --vectors glove_i8.npy

Reads what rasterise.js drew (--raw) and the 3D emoji, which come as pictures.
Writes

    sprites.bin    the pictures as WebP with alpha, one after another
    offsets.npy    int64, where each begins, and the end of the last
    meta.jsonl.gz  one line for each: i, set, name, kw, group, sub, extra,
                   style, lic, w (how often to draw it), src (name in its set)
    vocab.json, glove_i8.npy   the vocabulary given, unchanged

Trained weights depend on the vocabulary, so a new one is made only by
vocabulary.py and on purpose.
"""

import argparse
import hashlib
import os
import shutil
from collections import Counter

import numpy as np
from PIL import Image

from captions import Captioner
from packed import WORK, read_drawn, report, webp, write_packed
from sets import read_sets

SIZE = 128
BORDER = SIZE // 32

# Folders of openclipart with screen elements, plain shapes and logos.
CLIPART_LEFT_OUT = ('computer/', 'shapes/', 'special/', 'logos/')

# Sets whose people are drawn half as often.
PEOPLE_HALVED = {'twemoji', 'emojione', 'noto-v1'}


def read_3d(npm, emoji):
    """Yields (record, pixels) for the 3D emoji: one skin tone of each, chosen
    by the hash of its name, and no country flags."""
    directory = os.path.join(npm, 'lobehub-fluent-emoji-3d-1.1.0', 'package', 'assets')
    for file in sorted(os.listdir(directory)):
        code = file.removesuffix('.webp').lower()
        entry = emoji.by_code.get(code)
        if entry is None or is_country_flag(entry, code) or not is_chosen_tone(entry):
            continue
        picture = Image.open(os.path.join(directory, file)).convert('RGBA')
        yield {'set': 'fluent-3d', 'name': code}, shrink_3d(picture)


def is_country_flag(entry, code):
    return entry['group'] == 'flags' and code.startswith('1f1') and code.count('-') == 1


def is_chosen_tone(entry):
    if 'tone' not in entry:
        return True
    digest = hashlib.md5(entry['name'].encode()).hexdigest()
    return entry['tone'] == int(digest, 16) % 5 + 1


def shrink_3d(picture):
    """Scales a 3D emoji to the size of a sprite.

    The alpha of the package is coarse. It is smoothed at full size, and the
    colours are spread outward by two pixels so that the softened edge has a
    colour of its own.
    """
    values = np.asarray(picture, np.float32) / 255
    alpha = values[..., 3]
    solid = alpha > .5
    colour = spread(values[..., :3] * solid[..., None], solid, 2)
    alpha = blur(blur(alpha))
    inner = SIZE - 2 * BORDER
    channels = np.dstack([colour * alpha[..., None], alpha])
    scaled = np.dstack([
        np.asarray(Image.fromarray(np.ascontiguousarray(channels[..., c])).resize(
            (inner, inner), Image.LANCZOS))
        for c in range(4)
    ])
    scaled = np.clip(scaled, 0, 1)
    alpha = scaled[..., 3:]
    colour = np.where(alpha > 1e-3, scaled[..., :3] / np.maximum(alpha, 1e-3), 0)
    sprite = np.zeros((SIZE, SIZE, 4), np.uint8)
    whole = np.clip(np.dstack([colour, alpha]), 0, 1)
    sprite[BORDER:-BORDER, BORDER:-BORDER] = (whole * 255 + .5).astype(np.uint8)
    return sprite


def blur(plane):
    """One pass of the kernel 1 2 1 along both axes, edges repeated."""
    padded = np.pad(plane, ((1, 1), (0, 0)), mode='edge')
    plane = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    padded = np.pad(plane, ((0, 0), (1, 1)), mode='edge')
    return (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4


def spread(colour, solid, times):
    """Gives transparent pixels the mean colour of their solid neighbours."""
    weight = solid.astype(np.float32)
    for _ in range(times):
        total, count = colour.copy(), weight.copy()
        for shift in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            total += np.roll(colour, shift, (0, 1))
            count += np.roll(weight, shift, (0, 1))
        reached = (weight < .5) & (count > 0)
        colour = np.where(reached[..., None], total / np.maximum(count, 1e-6)[..., None], colour)
        weight = np.where(reached, 1, weight).astype(np.float32)
    return colour


def clipart_fault(record, pixels):
    """Why a drawing of openclipart is not used, or None: some are collections,
    and many are tiny in their page or cut off by it."""
    if record['name'].startswith(CLIPART_LEFT_OUT):
        return 'folder'
    title = record.get('title', '').lower()
    if 'collection' in title or 'theme' in title:
        return 'collection'
    opaque = pixels[..., 3] > 40
    rows = np.flatnonzero(opaque.any(1))
    columns = np.flatnonzero(opaque.any(0))
    if len(rows) == 0:
        return 'empty'
    height = rows[-1] - rows[0] + 1
    width = columns[-1] - columns[0] + 1
    if max(height, width) < 70:
        return 'small'
    # A drawing with a long run along one or two edges of the page goes on
    # beyond them; along all four it is a framed picture.
    first, last = BORDER, SIZE - BORDER - 1
    edges = [opaque[:, first], opaque[:, last]]
    if height > 100:
        edges += [opaque[first], opaque[last]]
    touched = sum(edge.mean() > .35 for edge in edges)
    if touched in (1, 2):
        return 'cut off'
    return None


def gather(arguments, sets, captioner):
    """The (record, caption, pixels) of every usable picture, in the order of
    the data set, each picture once."""
    found, left_out = [], Counter()
    sources = [read_drawn(arguments.raw, SIZE, sets)]
    if 'fluent-3d' in sets:
        sources.append(read_3d(arguments.npm, captioner.emoji))
    for source in sources:
        for record, pixels in source:
            fault = clipart_fault(record, pixels) if record['set'] == 'openclipart' else None
            caption = captioner.caption(record)
            if fault or caption is None:
                left_out[fault or 'no words'] += 1
                continue
            found.append((record, caption, pixels))
    position = {name: i for i, name in enumerate(sets)}
    found.sort(key=lambda item: (position[item[0]['set']], item[0]['name']))

    kept, seen = [], set()
    for item in found:
        digest = hashlib.md5(np.ascontiguousarray(item[2][::2, ::2]).tobytes()).digest()
        if digest in seen:
            left_out['seen before'] += 1
            continue
        seen.add(digest)
        kept.append(item)
    print(f'{len(kept)} pictures; left out:', dict(left_out))
    return kept


def weight_of(base, caption, source):
    """How often a picture is drawn in training. Flags, signs and skin tones are
    so many that they would take too large a share."""
    weight = base
    if caption.group in ('flags', 'symbols'):
        weight *= .5
    if caption.extra:
        weight *= .6
    if caption.group == 'people body' and source in PEOPLE_HALVED:
        weight *= .5
    return round(weight, 3)


def describe(number, record, caption, source):
    """The line of meta.jsonl for a picture."""
    styles = source.styles
    if record['set'].startswith('streamline') and record['name'].endswith('-flat'):
        styles = ['flat blue icon', 'flat icon']
    if record['name'].endswith('-duo'):
        styles = styles + ['duotone']
    return {
        'i': number,
        'set': record['set'],
        'name': caption.name,
        'kw': caption.keywords[:12],
        'group': caption.group,
        'sub': caption.subgroup,
        'extra': caption.extra,
        'style': styles,
        'lic': source.licence,
        'w': weight_of(source.weight, caption, record['set']),
        'src': record['name'],
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description='Builds the 128x128 data set.')
    parser.add_argument('--out', required=True, help='folder to write')
    parser.add_argument('--raw', default=os.path.join(WORK, 'raw128'),
                        help='folder with the output of rasterise.js')
    parser.add_argument('--npm', default=os.path.join(WORK, 'npm'),
                        help='folder with the unpacked packages')
    parser.add_argument('--sets', help='only these sets, separated by commas')
    parser.add_argument('--vocabulary', help='vocab.json to copy beside the pictures')
    parser.add_argument('--vectors', help='glove_i8.npy to copy beside the pictures')
    parser.add_argument('--quality', type=int, default=80, help='quality of the WebP files')
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    sets = read_sets(arguments.npm, arguments.sets)
    kept = gather(arguments, sets, Captioner(arguments.npm))
    lines, files = [], []
    for number, (record, caption, pixels) in enumerate(kept):
        source = sets[record['set']]
        lines.append(describe(number, record, caption, source))
        # Sets that are rarely drawn are stored a little smaller.
        quality = arguments.quality - 12 if source.weight <= .45 else arguments.quality
        files.append(webp(pixels, quality, alpha_quality=70))
    write_packed(arguments.out, 'sprites.bin', files, lines)
    for given, name in ((arguments.vocabulary, 'vocab.json'), (arguments.vectors, 'glove_i8.npy')):
        if given:
            shutil.copyfile(given, os.path.join(arguments.out, name))
    report(lines, files)


if __name__ == '__main__':
    main()
