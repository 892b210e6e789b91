#!/usr/bin/env python3
"""Make the files that the program embeds out of what training wrote (numpy only).

  export.py --model DIR --words DIR --out internal/engine/builtin/tiny/neural/weights
  export.py --upscaler DIR --out internal/engine/builtin/tiny/neural/weights

--model DIR holds model.json and the files it names, in float16 (train.py); --words DIR
holds vocab.json and glove_i8.npy; --upscaler DIR holds upscale.npz (upscaler.py). What is written:

  model.json                 config, sampler, size and SHA-256 of each file, and where each tensor lies
  model.0.bin model.1.bin    the tensors; none straddles two files, each begins at a multiple of 64
  words.txt words.bin        the vocabulary in order, and an int8 vector of 100 per word (two rows before
                             the words: nothing, and an unknown word)
  upscale.json upscale.bin   the network that enlarges

Kinds of tensors:

  matrix  weights of a linear layer, k inputs and n outputs: a float32 scale per column, then int8 in
          panels of 32 columns ([n/32][k][32]); scales and columns are filled up with zeros to whole panels
  rows    a table: a float32 scale per row, then int8 rows
  half    float16 as it is; weights of a convolution as [ky][kx][input][output]
"""
import argparse
import hashlib
import json
import os
import re

import numpy as np

PANEL, ALIGN, PART = 32, 64, 15 * 2 ** 20


def read(folder):
    """The index and the tensors of a training export, as float32."""
    with open(os.path.join(folder, 'model.json')) as f:
        index = json.load(f)
    blob = b''.join(open(os.path.join(folder, f), 'rb').read() for f in index['files'])
    return index, {t['name']: np.frombuffer(blob, '<f2', int(np.prod(t['shape'])), t['offset']).astype(np.float32).reshape(t['shape'])
                   for t in index['tensors']}


def quantise(v):
    """int8 rows and a scale for each."""
    rows = v.reshape(v.shape[0], -1)
    scale = (np.maximum(np.abs(rows).max(1), 1e-8) / 127).astype(np.float32)
    return np.clip(np.round(rows / scale[:, None]), -127, 127).astype(np.int8), scale


def matrix(q, scale):
    """q is [n][k], as PyTorch keeps it."""
    n, k = q.shape
    panels = -(-n // PANEL)
    wide = np.zeros((panels * PANEL, k), np.int8)
    wide[:n] = q
    scales = np.zeros(panels * PANEL, '<f4')
    scales[:n] = scale
    return scales.tobytes() + np.ascontiguousarray(wide.reshape(panels, PANEL, k).transpose(0, 2, 1)).tobytes()


def half(v):
    h = v.astype('<f2')
    if not np.isfinite(h).all():
        raise SystemExit('a tensor has numbers that float16 does not hold')
    return np.ascontiguousarray(h).tobytes()


class Files:
    """Parts of at most PART bytes that tensors are laid into."""

    def __init__(self, out, pattern):
        self.out, self.pattern, self.parts, self.tensors = out, pattern, [b''], []

    def put(self, name, kind, shape, data):
        last = self.parts[-1]
        if len(last) + len(data) + ALIGN > PART and last:
            self.parts.append(b'')
        at = -(-len(self.parts[-1]) // ALIGN) * ALIGN
        self.parts[-1] = self.parts[-1].ljust(at, b'\0') + data
        self.tensors.append(dict(name=name, kind=kind, shape=list(shape), file=len(self.parts) - 1, offset=at))

    def write(self):
        return [put(self.out, self.pattern % i if '%' in self.pattern else self.pattern, p) for i, p in enumerate(self.parts)]


def put(out, name, data):
    with open(os.path.join(out, name), 'wb') as f:
        f.write(data)
    return dict(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())


def save(out, name, index):
    """JSON with a line for each tensor, so that two versions can be compared."""
    lines = json.dumps(index['tensors']).replace('}, {', '},\n  {')
    index = dict(index, tensors='@')
    with open(os.path.join(out, name), 'w') as f:
        f.write(json.dumps(index, indent=1).replace('"@"', lines) + '\n')


def model(folder, words, out):
    index, tensors = read(folder)
    files = Files(out, 'model.%d.bin')
    for name in sorted(tensors, key=natural):
        v = tensors[name]
        if name == 'text.emb.weight':
            q, scale = quantise(v)
            files.put(name, 'rows', v.shape, scale.astype('<f4').tobytes() + q.tobytes())
        elif v.ndim == 2 and name.endswith('.weight'):
            q, scale = quantise(v)
            files.put(name, 'matrix', v.shape[::-1], matrix(q, scale))
        elif v.ndim == 4:
            v = v.transpose(2, 3, 1, 0)
            files.put(name, 'half', v.shape, half(v))
        else:
            files.put(name, 'half', v.shape, half(v))
    with open(os.path.join(words, 'vocab.json')) as f:
        vocabulary = json.load(f)
    vectors = np.load(os.path.join(words, 'glove_i8.npy'))
    assert vectors.shape == (len(vocabulary['words']) + 2, 100) and vectors.dtype == np.int8
    assert not any('\n' in w for w in vocabulary['words'])
    assert vocabulary['learned'] == index['config']['learned'], 'words of another model'
    listed = files.write()
    listed.append(put(out, 'words.txt', '\n'.join(vocabulary['words']).encode() + b'\n'))
    listed.append(put(out, 'words.bin', vectors.tobytes()))
    save(out, 'model.json', dict(format='atelier-tiny-2', config=index['config'], text_len=index['text_len'],
                                 vector_norm=index.get('glove_row_norm', 10.), sampler=index['sampler'], files=listed, tensors=files.tensors))
    report(listed)


def natural(name):
    return [int(p) if p.isdigit() else p for p in re.split(r'(\d+)', name)]


def upscaler(folder, out):
    with np.load(os.path.join(folder, 'upscale.npz')) as f:
        tensors = {n: f[n].astype(np.float32) for n in f.files}
    layers = sum(v.ndim == 4 for v in tensors.values())
    files = Files(out, 'upscale.bin')
    for i in range(layers):
        v = tensors['convs.%d.weight' % i].transpose(2, 3, 1, 0)
        files.put('convs.%d.weight' % i, 'half', v.shape, half(v))
        files.put('convs.%d.bias' % i, 'half', tensors['convs.%d.bias' % i].shape, half(tensors['convs.%d.bias' % i]))
        if i < layers - 1:
            files.put('slopes.%d' % i, 'half', tensors['slopes.%d.weight' % i].shape, half(tensors['slopes.%d.weight' % i]))
    listed = files.write()
    channels = tensors['convs.0.weight'].shape[0]
    save(out, 'upscale.json', dict(format='atelier-upscale-1', config=dict(channels=channels, layers=layers - 2, scale=4),
                                   files=listed, tensors=files.tensors))
    report(listed)


def report(files):
    for f in files:
        print('%-12s %10d bytes' % (f['name'], f['size']))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--out', required=True)
    p.add_argument('--model')
    p.add_argument('--words')
    p.add_argument('--upscaler')
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    if a.model:
        model(a.model, a.words or a.model, a.out)
    if a.upscaler:
        upscaler(a.upscaler, a.out)


if __name__ == '__main__':
    main()
