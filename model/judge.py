#!/usr/bin/env python3
"""A judge that needs no eye: a small network that says what a picture shows.

    judge.py prompts DATA                    writes prompts.json and prompts.txt, 512 prompts, 384 of them combinations
                                             kept from training, and sheet.txt, the 48 of the contact sheet
    judge.py train   DATA OUT --minutes 1    trains the judge, writes judge.json and judge.bin
    judge.py network DATA JUDGE WEIGHTS      draws all prompts with exported weights, and scores them
    judge.py score   DATA JUDGE PICTURES     scores 000.png, 001.png … that something else drew

The judge sees a picture at 64×64 and answers four questions: which object (a name of the emoji standard), which
colour it was given (one of 20, or none), how many there are (1 to 4), and which landscape is behind it (one of
16, or none). It learns from scenes made of real sprites of eight sets, five of which the model draws from. One
sprite of each name is kept from it; on scenes of those, its own score is the best that a model could hope for.

A picture counts as right when the object is the first guess, and, for a combination, the colour, number or
landscape too.
"""
import argparse
import json
import os
import time
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from scenes import DRAWN_FROM, NUMBERS, SCENES, TINTS, COLOUR_WORDS, Vocab, held, prompt_for, read_meta, sheet_prompts, words_of
from network import Net, as_shipped, import_weights, load_glove
from pictures import compose, load_sprites

KINDS = {'plain': 128, 'colour': 128, 'count': 128, 'scene': 128}
GROUPS = {'animals nature', 'food drink', 'travel places', 'activities', 'objects', 'smileys emotion'}
HERE = os.path.dirname(os.path.abspath(__file__))
PROMPTS = os.path.join(HERE, 'prompts.json')


def classes(meta):
    """The names that the judge tells apart: drawn in at least four of the five sets, in the same sense."""
    sets = {}
    for m in meta:
        if m['group'] in GROUPS and not m['extra'] and len(m['name'].split()) <= 4:
            sets.setdefault(m['name'], set()).add(m['set'])
    return sorted(n for n, s in sets.items() if len(s & DRAWN_FROM) >= 4)


def kept(m):
    """Whether a sprite is kept from the judge, to test it: one of the name's, by hash of the set."""
    order = sorted(DRAWN_FROM, key=lambda s: zlib.crc32((m['name'] + '|' + s).encode()))
    return m['set'] == order[0]


def pick_prompts(meta):
    """Always the same: the first by hash. Combinations are such that were kept from training."""
    names = [n for n in classes(meta) if len(n.split()) <= 2 and not set(words_of(n)) & COLOUR_WORDS]
    options = {'plain': [''], 'colour': TINTS, 'count': [str(n) for n in NUMBERS], 'scene': list(SCENES)}
    chosen = []
    for kind, n in KINDS.items():
        pairs = [(name, what) for name in names for what in options[kind] if kind == 'plain' or held(kind, name, what)]
        pairs.sort(key=lambda p: zlib.crc32(f'{kind}/{p[0]}/{p[1]}'.encode()))
        used = set()
        for name, what in pairs:
            if name not in used and len(used) < n:
                used.add(name)
                chosen.append(dict(kind=kind, name=name, what=what, prompt=prompt_for(kind, name, what)))
    return chosen


class Step(nn.Module):
    def __init__(self, ci, co, stride):
        super().__init__()
        self.a = nn.Conv2d(ci, co, 3, stride=stride, padding=1, bias=False)
        self.b = nn.Conv2d(co, co, 3, padding=1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(co), nn.BatchNorm2d(co)
        self.skip = nn.Conv2d(ci, co, 1, stride=stride, bias=False)

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        return F.relu(self.nb(self.b(y)) + self.skip(x))


class Judge(nn.Module):
    def __init__(self, names):
        super().__init__()
        widths = [32, 64, 128, 192, 192]
        self.stem = nn.Conv2d(3, widths[0], 3, padding=1)
        self.steps = nn.ModuleList([Step(widths[i], widths[i + 1], 2) for i in range(4)])
        self.drop = nn.Dropout(.1)
        sizes = dict(object=names, colour=len(TINTS) + 1, count=4, scene=len(SCENES) + 1)
        self.heads = nn.ModuleDict({k: nn.Linear(widths[-1], n) for k, n in sizes.items()})

    def forward(self, x):
        """x (B,3,128,128) from -1 to 1."""
        x = F.relu(self.stem(F.avg_pool2d(x, 2)))
        for s in self.steps:
            x = s(x)
        x = self.drop(x.mean((2, 3)))
        return {k: h(x) for k, h in self.heads.items()}


def spoil(x):
    """What pictures of a model have and sprites have not: noise, blur, other brightness."""
    B = x.shape[0]
    pick = lambda share: (torch.rand(B, 1, 1, 1, device=x.device) < share).float()
    soft = F.interpolate(F.avg_pool2d(x, 2), scale_factor=2, mode='bilinear', align_corners=False)
    use = pick(.4)
    x = x * (1 - use) + soft * use
    x = x + torch.randn_like(x) * .12 * torch.rand(B, 1, 1, 1, device=x.device) * pick(.5)
    x = x * (1 + .2 * (torch.rand(B, 1, 1, 1, device=x.device) - .5)) + .2 * (torch.rand(B, 1, 1, 1, device=x.device) - .5)
    return x.clamp(-1, 1)


def train(a):
    from train import stream
    began = time.time()
    cuda = torch.cuda.is_available()
    device = torch.device('cuda' if cuda else 'cpu')
    meta = read_meta(a.data)
    names = classes(meta)
    ids = {n: i for i, n in enumerate(names)}

    def view(test):
        out = []
        for m in meta:
            w = float(m['name'] in ids and not m['extra'] and kept(m) == test)
            out.append(dict(m, w=w if not test or m['set'] in DRAWN_FROM else 0.))
        return out
    how = dict(mix={'plain': .4, 'colour': .3, 'count': .3}, ground=.5, everything=True)
    vocab = Vocab(a.data)
    lessons = stream(view(False), vocab, a.batch, 5, cuda, **how)
    tests = stream(view(True), vocab, a.batch, 6, False, **how)
    next(lessons)
    sprites = load_sprites(a.data).to(device)
    label = torch.tensor([ids.get(m['name'], 0) for m in meta])
    net = Judge(len(names)).to(device)
    if cuda:
        net = net.to(memory_format=torch.channels_last)
    forward = torch.compile(net, dynamic=False) if cuda else net
    optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=.02)
    step, deadline = 0, began + a.minutes * 60
    print('%d names, %.2fM parameters' % (len(names), sum(p.numel() for p in net.parameters()) / 1e6), flush=True)
    while time.time() < deadline and not (a.steps_only and step >= a.steps_only):
        scenes = next(lessons)
        x = spoil(compose(scenes, sprites, device))
        truth = scenes['labels'].clone()
        truth[:, 0] = label[truth[:, 0]]
        truth = truth.to(device)
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16, enabled=cuda):
            says = forward(x)
        loss = sum(F.cross_entropy(says[k].float(), truth[:, i], label_smoothing=.05) for i, k in enumerate(says))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        left = max(0., (deadline - time.time()) / (deadline - began))
        for g in optimiser.param_groups:
            g['lr'] = 2e-3 * min(1., (step + 1) / 100) * max(.02, min(1., 1.4 * left))
        optimiser.step()
        step += 1
        if step % 200 == 0:
            print('[%5.1fs] judge step %d loss %.3f' % (time.time() - began, step, float(loss)), flush=True)
    net.eval()
    os.makedirs(a.out, exist_ok=True)
    save(net, names, a.out)
    net, _ = load(a.out, device)
    found, n = np.zeros(5), 0
    for _ in range(a.test_batches):
        scenes = next(tests)
        truth = scenes['labels'].clone()
        truth[:, 0] = label[truth[:, 0]]
        guess = guesses(net, compose(scenes, sprites, device))
        truth = truth.numpy()
        right = [guess[k][:, 0] == truth[:, i] for i, k in enumerate(['object', 'colour', 'count', 'scene'])]
        found += [r.sum() for r in right] + [np.logical_and.reduce(right).sum()]
        n += len(truth)
    print('on scenes of %d kept sprites: object %.3f colour %.3f count %.3f scene %.3f, all four %.3f; %d steps' % (
        (sum(m['w'] > 0 for m in view(True)),) + tuple(found / n) + (step,)), flush=True)


@torch.no_grad()
def guesses(net, x):
    """Per question the numbers of the five best answers, best first. x (B,3,128,128) from -1 to 1."""
    out = {}
    for k, v in net(x.float()).items():
        out[k] = v.topk(min(5, v.shape[1])).indices.cpu().numpy()
    return out


def save(net, names, folder):
    """int8 with a scale per row, the rest float32: about a megabyte."""
    index, data, at = [], [], 0
    for name, v in net.state_dict().items():
        v = v.detach().float().cpu().numpy()
        if v.ndim >= 2:
            m = v.reshape(v.shape[0], -1)
            s = np.maximum(np.abs(m).max(1), 1e-8) / 127
            b, kind = s.astype('<f4').tobytes() + np.round(m / s[:, None]).astype(np.int8).tobytes(), 'int8-row'
        else:
            b, kind = v.astype('<f4').tobytes(), 'float32'
        index.append(dict(name=name, shape=list(v.shape), kind=kind, offset=at, bytes=len(b)))
        data.append(b)
        at += len(b)
    blob = b''.join(data)
    with open(os.path.join(folder, 'judge.bin'), 'wb') as f:
        f.write(blob)
    with open(os.path.join(folder, 'judge.json'), 'w') as f:
        json.dump(dict(names=names, crc32=zlib.crc32(blob) & 0xffffffff, tensors=index), f)


def load(folder, device):
    with open(os.path.join(folder, 'judge.json')) as f:
        index = json.load(f)
    with open(os.path.join(folder, 'judge.bin'), 'rb') as f:
        blob = f.read()
    if zlib.crc32(blob) & 0xffffffff != index['crc32']:
        raise ValueError('the judge is damaged')
    weights = {}
    for t in index['tensors']:
        n, at = int(np.prod(t['shape'])), t['offset']
        if t['kind'] == 'int8-row':
            rows = t['shape'][0]
            v = np.frombuffer(blob, np.int8, n, at + 4 * rows).reshape(rows, -1) * np.frombuffer(blob, '<f4', rows, at)[:, None]
        else:
            v = np.frombuffer(blob, '<f4', n, at)
        weights[t['name']] = torch.from_numpy(np.array(v, np.float32).reshape(t['shape']))
    net = Judge(len(index['names'])).to(device)
    net.load_state_dict(weights)
    return net.eval(), index['names']


def score(net, names, prompts, pictures, device):
    """pictures: uint8 (N,128,128,3) in the order of the prompts -> the table of scores."""
    x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
    parts = [guesses(net, x[i:i + 256].to(device)) for i in range(0, len(x), 256)]
    g = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
    ids = {n: i for i, n in enumerate(names)}
    answers = {'colour': {t: i + 1 for i, t in enumerate(TINTS)}, 'count': {str(n): n - 1 for n in (2, 3, 4)},
               'scene': {s: i + 1 for i, s in enumerate(SCENES)}}
    table = {k: dict(n=0, right=0, object=0, five=0, attribute=0) for k in list(KINDS) + ['all']}
    for i, p in enumerate(prompts):
        first = bool(g['object'][i, 0] == ids[p['name']])
        five = bool((g['object'][i] == ids[p['name']]).any())
        other = p['kind'] == 'plain' or bool(g[p['kind']][i, 0] == answers[p['kind']][p['what']])
        for k in (p['kind'], 'all'):
            t = table[k]
            t['n'] += 1
            t['object'] += first
            t['five'] += five
            t['attribute'] += other
            t['right'] += first and other
    return table


def show(title, table, names):
    print(f'{title}: chance for an object is 1 in {names}')
    print('%-8s %5s %8s %8s %8s %10s' % ('kind', 'n', 'right', 'object', 'top 5', 'attribute'))
    for k, t in ((k, t) for k, t in table.items() if t['n']):
        print('%-8s %5d %8.3f %8.3f %8.3f %10.3f' % (k, t['n'], t['right'] / t['n'], t['object'] / t['n'],
                                                     t['five'] / t['n'], t['attribute'] / t['n']), flush=True)


def read_prompts():
    with open(PROMPTS) as f:
        return json.load(f)


def network(a):
    from train import draw_all
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    config, weights = import_weights(a.weights)
    net = Net(config, load_glove(a.data)).to(device)
    net.load_state_dict(as_shipped(weights))
    net.eval()
    prompts = read_prompts()[:a.only or None]
    judge, names = load(a.judge, device)
    for seed in range(a.seeds):
        pictures = draw_all(net, Vocab(a.data), [p['prompt'] for p in prompts], a.steps, device, a.guidance, 1 + 10000 * seed)
        show('%s, %d steps, guidance %g, seed %d' % (a.weights, a.steps, a.guidance, seed), score(judge, names, prompts, pictures, device), len(names))


def folder(a):
    from PIL import Image
    prompts = read_prompts()
    pictures = np.stack([np.asarray(Image.open(os.path.join(a.pictures, '%03d.png' % i)).convert('RGB').resize((128, 128), Image.BOX))
                         for i in range(len(prompts))])
    device = torch.device('cpu')
    judge, names = load(a.judge, device)
    show(a.pictures, score(judge, names, prompts, pictures, device), len(names))


def prompts(a):
    chosen = pick_prompts(read_meta(a.data))
    with open(PROMPTS, 'w') as f:
        f.write('[\n' + ',\n'.join(json.dumps(p) for p in chosen) + '\n]\n')
    for name, lines in (('prompts.txt', [p['prompt'] for p in chosen]), ('sheet.txt', sheet_prompts())):
        with open(os.path.join(HERE, name), 'w') as f:
            f.write('\n'.join(lines) + '\n')
    print(len(chosen), 'prompts', len(classes(read_meta(a.data))), 'names')


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(dest='command', required=True)
    for name, run, words in (('prompts', prompts, ['data']), ('train', train, ['data', 'out']),
                             ('network', network, ['data', 'judge', 'weights']), ('score', folder, ['data', 'judge', 'pictures'])):
        p = sub.add_parser(name)
        for w in words:
            p.add_argument(w)
        p.set_defaults(run=run)
        p.add_argument('--minutes', type=float, default=1.)
        p.add_argument('--batch', type=int, default=1024)
        p.add_argument('--test-batches', type=int, default=8)
        p.add_argument('--steps', type=int, default=6)
        p.add_argument('--guidance', type=float, default=1.)
        p.add_argument('--seeds', type=int, default=1)
        p.add_argument('--only', type=int, default=0, help='so many prompts, for tests')
        p.add_argument('--steps-only', type=int, default=0, help='stop after so many steps, for tests')
    a = ap.parse_args()
    a.run(a)
    os._exit(0)


if __name__ == '__main__':
    main()
