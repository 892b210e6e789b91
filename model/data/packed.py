"""Pictures in files: what rasterise.js wrote, and the packed data sets."""

import glob
import gzip
import io
import json
import os
from collections import Counter

import numpy as np
from PIL import Image

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'work')


def read_drawn(directory, size, sets):
    """Yields (record, pixels) for the pictures of rasterise.js below directory
    that belong to sets."""
    for file in sorted(glob.glob(os.path.join(directory, '*.json'))):
        with open(file, encoding='utf-8') as opened:
            records = json.load(opened)
        if not records:
            continue
        pixels = np.memmap(file.removesuffix('.json') + '.rgba', dtype=np.uint8, mode='r')
        pixels = pixels.reshape(len(records), size, size, 4)
        for record, picture in zip(records, pixels):
            if record['set'] in sets:
                yield record, picture


def webp(pixels, quality, alpha_quality):
    """The picture as a WebP file."""
    out = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(pixels), 'RGBA')
    picture.save(out, 'WEBP', quality=quality, alpha_quality=alpha_quality, method=4, exact=False)
    return out.getvalue()


def write_packed(directory, name, files, lines):
    """Writes files one after another to directory/name, with offsets.npy, and
    the lines as meta.jsonl.gz."""
    os.makedirs(directory, exist_ok=True)
    offsets = [0]
    with open(os.path.join(directory, name), 'wb') as packed:
        for file in files:
            packed.write(file)
            offsets.append(offsets[-1] + len(file))
    np.save(os.path.join(directory, 'offsets.npy'), np.array(offsets, np.int64))
    # No time in the header: the same data gives the same file.
    with gzip.GzipFile(os.path.join(directory, 'meta.jsonl.gz'), 'wb', mtime=0) as meta:
        for line in lines:
            meta.write(json.dumps(line, separators=(',', ':')).encode() + b'\n')


def report(lines, files):
    """Prints pictures, names and size for each set."""
    pictures, sizes, names = Counter(), Counter(), {}
    for line, file in zip(lines, files):
        pictures[line['set']] += 1
        sizes[line['set']] += len(file)
        names.setdefault(line['set'], set()).add(line['name'])
    names['all'] = {line['name'] for line in lines}
    sizes['all'] = sum(sizes.values())
    pictures['all'] = len(lines)
    for name, count in pictures.items():
        mebibytes = sizes[name] / 2**20
        print(f'{name:28} {count:6} pictures {len(names[name]):6} names {mebibytes:6.2f} MiB')


def read_meta(directory):
    """The lines of meta.jsonl.gz in directory."""
    with gzip.open(os.path.join(directory, 'meta.jsonl.gz'), 'rt', encoding='utf-8') as file:
        return [json.loads(line) for line in file]
