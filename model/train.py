#!/usr/bin/env python3
"""Trains the picture model, then distils it to a few steps without guidance.

    train.py train  DATA OUT --minutes 9 --total-minutes 18 --checkpoint ck.pt [--start WEIGHTS]
    train.py distil DATA OUT --minutes 5 --checkpoint ck.pt
    train.py sample DATA OUT --start WEIGHTS [--guidance 3 --steps 12]

DATA is what data/build.py made. `train` can be called again with the same checkpoint and goes on; the learning
rate follows --total-minutes. --start begins with weights that were exported before. OUT gets the weights as
float16 (network.export) and samples.png, the contact sheet's prompts.
"""
import argparse
import math
import os
import re
import sys
import time

import numpy as np
import torch

from scenes import DRAWN_FROM, Scenes, Vocab, read_meta, sheet_prompts
from network import CONFIG, Net, export, import_weights, load_glove
from pictures import as_bytes, compose, grid, load_sprites, write_png

SHIFT = 1.5  # more steps near the noise


class Stream(torch.utils.data.IterableDataset):
    """Endless batches of scenes; each worker has random numbers of its own."""

    def __init__(self, meta, vocab, batch, seed, **how):
        self.meta, self.vocab, self.batch, self.seed, self.how = meta, vocab, batch, seed, how

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        scenes = Scenes(self.meta, self.vocab, self.seed * 1000 + (worker.id if worker else 0), **self.how)
        while True:
            yield {k: torch.from_numpy(v) for k, v in scenes.batch(self.batch).items()}


def stream(meta, vocab, batch, seed, cuda, **how):
    workers = min(12, max(1, (os.cpu_count() or 2) - 3)) if cuda else 0
    more = dict(prefetch_factor=4, persistent_workers=True) if workers else {}
    return iter(torch.utils.data.DataLoader(Stream(meta, vocab, batch, seed, **how), batch_size=None,
                                            num_workers=workers, pin_memory=cuda, **more))


# ------------------------------------------------------------------ optimiser: Muon on matrices, AdamW on the rest

def orthogonal(g):
    """Newton-Schulz: (k,r,c) matrices towards the nearest orthogonal ones."""
    x = g.bfloat16() if g.is_cuda else g.float()
    turned = x.shape[1] > x.shape[2]
    if turned:
        x = x.transpose(1, 2)
    x = x / (x.float().pow(2).sum((1, 2), keepdim=True).sqrt().to(x.dtype) + 1e-7)
    for _ in range(5):
        a = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.transpose(1, 2) if turned else x).float()


class Optimiser:
    def __init__(self, model, lr, decay=.01, muon=True):
        self.lr, self.decay, self.matrices, rest = lr, decay, [], []
        for name, p in model.named_parameters():
            if muon and p.ndim == 2 and re.search(r'blocks\.\d+\.(att|mlp)\.', name):
                parts = 3 if name.endswith('qkv.weight') else 2 if name.endswith('w12.weight') else 1
                self.matrices.append((p, parts))
            else:
                rest.append(p)
        self.momentum = [torch.zeros_like(p) for p, _ in self.matrices]
        fused = dict(fused=True) if rest[0].is_cuda else {}
        self.adam = torch.optim.AdamW([dict(params=[p for p in rest if p.ndim >= 2], weight_decay=decay),
                                       dict(params=[p for p in rest if p.ndim < 2], weight_decay=0.)],
                                      lr=lr, betas=(.9, .95), **fused)
        self.groups = {}
        for i, (p, parts) in enumerate(self.matrices):
            self.groups.setdefault((p.shape[0] // parts, p.shape[1]), []).append(i)

    @torch.no_grad()
    def step(self, scale):
        for group in self.adam.param_groups:
            group['lr'] = self.lr * scale
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        if not self.matrices:
            return
        torch._foreach_mul_(self.momentum, .95)
        torch._foreach_add_(self.momentum, [p.grad for p, _ in self.matrices])
        for (r, c), ids in self.groups.items():
            g = torch.cat([(self.matrices[i][0].grad + .95 * self.momentum[i]).view(-1, r, c) for i in ids])
            u, j = orthogonal(g) * (.2 * math.sqrt(max(r, c))), 0
            for i in ids:
                p, parts = self.matrices[i]
                p.mul_(1 - self.lr * scale * self.decay).add_(u[j:j + parts].reshape(p.shape), alpha=-self.lr * scale)
                j += parts
        for p, _ in self.matrices:
            p.grad = None

    def state(self):
        return dict(adam=self.adam.state_dict(), momentum=self.momentum)

    def load(self, s):
        self.adam.load_state_dict(s['adam'])
        for a, b in zip(self.momentum, s['momentum']):
            a.copy_(b)


class Average:
    """Exponential moving average of a network's weights."""

    def __init__(self, net, keep):
        self.keep, self.steps = keep, 0
        self.names = [n for n, _ in net.named_parameters()]
        self.live = [p for _, p in net.named_parameters()]
        self.mean = [p.detach().clone().float() for p in self.live]

    @torch.no_grad()
    def update(self):
        self.steps += 1
        k = min(self.keep, (1 + self.steps) / (10 + self.steps))
        torch._foreach_mul_(self.mean, k)
        torch._foreach_add_(self.mean, [p.detach() for p in self.live], alpha=1 - k)

    def named(self):
        return dict(zip(self.names, self.mean))

    @torch.no_grad()
    def load(self, weights):
        for n, m in zip(self.names, self.mean):
            m.copy_(weights[n])

    @torch.no_grad()
    def put_into(self, net):
        mean = self.named()
        for n, p in net.named_parameters():
            p.copy_(mean[n])


# ------------------------------------------------------------------ sampling

def timesteps(n):
    u = np.linspace(0, 1, n + 1)
    return (u / (u + SHIFT * (1 - u))).tolist()


def autocast(device):
    return torch.autocast(device_type=device.type, dtype=torch.bfloat16, enabled=device.type == 'cuda')


@torch.no_grad()
def draw(net, tokens, steps, device, seed=0, guidance=1.):
    """Euler steps on the predicted picture. -> (B,3,R,R)"""
    g = torch.Generator(device='cpu').manual_seed(seed)
    B, R = tokens.shape[0], net.c['res']
    z = torch.randn(B, 3, R, R, generator=g).to(device)
    tokens = tokens.to(device)
    ts = timesteps(steps)
    with autocast(device):
        text, none = net.text(tokens), net.text(torch.zeros_like(tokens))
    for k in range(steps):
        t = torch.full((B,), ts[k], device=device)
        with autocast(device):
            x = net.core(z, t, *text).float()
            if guidance != 1 and ts[k] < .95:
                x0 = net.core(z, t, *none).float()
                x = x0 + guidance * (x - x0)
        z = z + (x.clamp(-1.2, 1.2) - z) * ((ts[k + 1] - ts[k]) / (1 - ts[k]))
    return z


def draw_all(net, vocab, prompts, steps, device, guidance=1., seed=1, batch=128):
    tokens = torch.from_numpy(np.stack([vocab.encode(p) for p in prompts]))
    return np.concatenate([as_bytes(draw(net, tokens[i:i + batch], steps, device, seed + i, guidance))
                           for i in range(0, len(tokens), batch)])


def sheet(net, vocab, device, out, steps, guidance):
    write_png(os.path.join(out, 'samples.png'), grid(draw_all(net, vocab, sheet_prompts(), steps, device, guidance)))


# ------------------------------------------------------------------ training

def train(a, w):
    net, device, log = w.net, w.device, w.log
    average, optimiser = Average(net, a.average), Optimiser(net, a.lr)
    step, before = 0, 0.
    if a.checkpoint and os.path.exists(a.checkpoint):
        ck = torch.load(a.checkpoint, map_location='cpu', weights_only=False)
        net.load_state_dict(ck['net'])
        average.load(ck['average'])
        optimiser.load(ck['optimiser'])
        step, before, average.steps = ck['step'], ck['seconds'], ck['step']
        log('goes on at step', step, 'after %.1f minutes' % (before / 60))
    forward = w.compiled(net)
    params = list(net.parameters())
    net.train()
    total, count, since = 0., 0, time.time()
    spent = lambda: before + time.time() - w.began
    while time.time() < w.deadline and not (a.steps_only and step >= a.steps_only):
        scenes = next(w.scenes)
        x = compose(scenes, w.sprites, device)
        tokens = scenes['tokens'].to(device, non_blocking=True)
        B = x.shape[0]
        # Times in the middle are the hardest; one in ten is from anywhere, to cover both ends.
        t = torch.sigmoid(torch.randn(B, device=device) - .6)
        t = torch.where(torch.rand(B, device=device) < .1, torch.rand(B, device=device), t)
        tv = t.view(B, 1, 1, 1)
        z = tv * x + (1 - tv) * torch.randn_like(x)
        drop = torch.rand(tokens.shape, device=device) < .12
        with autocast(device):
            y = forward(z, t, tokens, drop)
        loss = (((y.float() - x) / (1 - tv).clamp(min=.05)) ** 2).mean()  # the error of the velocity
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.)
        progress = min(1., spent() / (a.total_minutes * 60))
        optimiser.step(min(1., (step + 1) / a.warmup) * (.03 + .97 * .5 * (1 + math.cos(math.pi * progress))))
        step += 1
        average.update()
        total, count = total + loss.detach(), count + 1
        if step in (1, 20, 100) or step % 500 == 0:
            mean = float(total) / count
            if not math.isfinite(mean):
                sys.exit('the loss is not finite')
            each = (time.time() - since) / count
            log('step %d loss %.4f, %.1f ms a step, %.0f pictures/s' % (step, mean, each * 1e3, B / each))
            total, count, since = 0., 0, time.time()
    if a.checkpoint:
        torch.save(dict(net=net.state_dict(), average=average.named(), optimiser=optimiser.state(), config=w.config,
                        step=step, seconds=spent()), a.checkpoint)
    export(average.named(), w.config, a.out, kind='base', step=step, minutes=round(spent() / 60, 2))
    average.put_into(net)
    net.eval()
    sheet(net, w.vocab, device, a.out, a.steps, a.guidance)
    log('done at step', step)


def distil(a, w):
    """The student learns to make in one evaluation, without guidance, the move that the guided teacher makes in
    three. Half of the places it learns at lie on its own paths from noise, half on paths from real pictures."""
    net, device, log = w.net, w.device, w.log
    if a.checkpoint:
        ck = torch.load(a.checkpoint, map_location='cpu', weights_only=False)
        net.load_state_dict({**ck['net'], **ck['average']}, strict=False)
    teacher = Net(w.config, w.vectors).to(device)
    teacher.load_state_dict(net.state_dict())
    teacher.eval().requires_grad_(False)
    optimiser, average = Optimiser(net, a.lr, 0., muon=False), Average(net, .998)
    K, M = a.student_steps, 3
    grid_t = torch.tensor(timesteps(K), device=device)
    student, master = w.compiled(net), w.compiled(teacher)
    params = list(net.parameters())
    flat = lambda v: v.view(-1, 1, 1, 1)

    @torch.no_grad()
    def own_path(tokens):
        z, places = torch.randn(len(tokens), 3, 128, 128, device=device), []
        for k in range(K):
            places.append(z)
            with autocast(device):
                x = student(z, grid_t[k].expand(len(tokens)).contiguous(), tokens).float().clamp(-1.2, 1.2)
            z = z + (x - z) * ((grid_t[k + 1] - grid_t[k]) / (1 - grid_t[k]))
        return torch.stack(places)

    @torch.no_grad()
    def lesson(z, k, tokens):
        """Where one Euler step from z has to aim at, to land where the teacher lands."""
        a_, b_, y = grid_t[k], grid_t[k + 1], z
        both = torch.cat([tokens, torch.zeros_like(tokens)])
        for m in range(M):
            s0, s1 = a_ + (b_ - a_) * m / M, a_ + (b_ - a_) * (m + 1) / M
            with autocast(device):
                o = master(torch.cat([y, y]), torch.cat([s0, s0]), both).float()
            given, free = o.chunk(2)
            x = torch.where(flat(s0) < .95, free + a.guidance * (given - free), given).clamp(-1.2, 1.2)
            y = y + (x - y) * flat((s1 - s0) / (1 - s0).clamp(min=1e-4))
        return z + (y - z) * flat((1 - a_) / (b_ - a_))

    def learn(z, k, tokens, scale):
        goal = lesson(z, k, tokens)
        t = grid_t[k]
        with autocast(device):
            y = student(z, t, tokens)
        loss = (((y.float() - goal) / flat((1 - t).clamp(min=.1))) ** 2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.)
        optimiser.step(scale)
        average.update()
        return loss.detach()

    began, step, total, count, since = time.time(), 0, 0., 0, time.time()
    span = max(1., w.deadline - began)
    left = lambda: max(0., 1 - (time.time() - began) / span)
    while time.time() < w.deadline and not (a.steps_only and step >= a.steps_only):
        scenes = next(w.scenes)
        tokens = scenes['tokens'].to(device, non_blocking=True)
        B = len(tokens)
        places = own_path(tokens)
        order = torch.stack([torch.randperm(K, device=device) for _ in range(B)], 1)  # each round has every k in mixed order
        rows = torch.arange(B, device=device)
        for part in range(K):
            k = order[part]
            total = total + learn(places[k, rows], k, tokens, min(1., (step + 1) / 50) * (.05 + .95 * left()))
            step, count = step + 1, count + 1
            if step % 2 == 0:
                scenes = next(w.scenes)
                x = compose(scenes, w.sprites, device)
                k = torch.randint(0, K, (B,), device=device)
                z = flat(grid_t[k]) * x + (1 - flat(grid_t[k])) * torch.randn_like(x)
                total = total + learn(z, k, scenes['tokens'].to(device), min(1., (step + 1) / 50) * (.05 + .95 * left()))
                step, count = step + 1, count + 1
        if step // 100 != (step - K) // 100 or a.steps_only:
            log('distil step %d loss %.4f, %.1f ms a step' % (step, float(total) / count, (time.time() - since) / count * 1e3))
            total, count, since = 0., 0, time.time()
    export(average.named(), w.config, a.out, kind='student', step=step, sampler=dict(name='euler', steps=K, shift=SHIFT))
    average.put_into(net)
    net.eval()
    sheet(net, w.vocab, device, a.out, K, 1.)
    log('done at step', step)


class World:
    """What every command works with."""

    def __init__(self, a):
        self.began = time.time()
        os.makedirs(a.out, exist_ok=True)
        self.journal = open(os.path.join(a.out, 'train.log'), 'a')
        self.device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        self.cuda = self.device.type == 'cuda'
        torch.manual_seed(a.seed)
        if self.cuda:
            torch.set_float32_matmul_precision('high')
            torch.backends.cudnn.benchmark = True
        self.deadline = self.began + a.minutes * 60
        self.vocab, self.vectors = Vocab(a.data), load_glove(a.data)
        self.config, weights = dict(CONFIG, learned=self.vocab.learned), None
        if a.start:
            self.config, weights = import_weights(a.start)
        if a.command != 'sample':  # the workers are forked before the device is busy
            meta = read_meta(a.data, DRAWN_FROM)
            self.scenes = stream(meta, self.vocab, a.batch, a.seed + int(self.began) % 10000, self.cuda)
            next(self.scenes)
            self.sprites = load_sprites(a.data).to(self.device)
            self.log('sprites', len(meta), 'in use', sum(m['w'] > 0 for m in meta))
        self.net = Net(self.config, self.vectors).to(self.device)
        if weights:
            self.net.load_state_dict(weights)
        self.log('%.2fM parameters' % (sum(p.numel() for p in self.net.parameters()) / 1e6))

    def log(self, *words):
        line = '[%6.1fs] ' % (time.time() - self.began) + ' '.join(str(w) for w in words)
        print(line, flush=True)
        print(line, file=self.journal, flush=True)

    def compiled(self, net):
        return torch.compile(net, dynamic=False) if self.cuda else net


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('command', choices=['train', 'distil', 'sample'])
    ap.add_argument('data')
    ap.add_argument('out')
    ap.add_argument('--minutes', type=float, default=9., help='wall clock of this call, before sampling and export')
    ap.add_argument('--total-minutes', type=float, default=18., help='wall clock of all calls together: the schedule')
    ap.add_argument('--checkpoint', default='')
    ap.add_argument('--start', default='', help='folder of exported weights to begin with')
    ap.add_argument('--batch', type=int, default=512)
    ap.add_argument('--lr', type=float, default=8e-4)
    ap.add_argument('--warmup', type=int, default=300)
    ap.add_argument('--average', type=float, default=.9995)
    ap.add_argument('--guidance', type=float, default=3.)
    ap.add_argument('--steps', type=int, default=12, help='of samples')
    ap.add_argument('--student-steps', type=int, default=6)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--steps-only', type=int, default=0, help='stop after so many steps, for tests')
    a = ap.parse_args()
    w = World(a)
    if a.command == 'sample':
        w.net.eval()
        sheet(w.net, w.vocab, w.device, a.out, a.steps, a.guidance)
    else:
        dict(train=train, distil=distil)[a.command](a, w)
    w.journal.close()
    os._exit(0)  # the loader's endless workers need no orderly end


if __name__ == '__main__':
    main()
