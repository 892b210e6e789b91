"""Scenes and their captions: what is in a picture, where, in which colour, and the words for it.

A scene is made of sprites with transparent backgrounds. Most show one object; others show an object
in another colour, several of it, two objects, a small one in a corner, each on a plain background, a
gradient or a landscape. Everything here is numpy and plain Python: it runs in the loader's workers.

Some combinations are never made for training, so that they can be asked for afterwards: one in ten of
all pairs of an object with a colour, a number or a place (`held`), and those of the contact sheet.
"""
import json
import os
import random
import re
import zlib

import numpy as np

TEXT_LENGTH = 24
PAD, UNKNOWN = 0, 1

COLOURS = {
    'red': (220, 40, 40), 'orange': (245, 140, 30), 'yellow': (250, 210, 50), 'green': (60, 165, 70),
    'blue': (50, 100, 220), 'purple': (130, 60, 180), 'pink': (245, 140, 185), 'brown': (125, 80, 45),
    'black': (25, 25, 28), 'gray': (135, 138, 145), 'teal': (20, 140, 140), 'cyan': (60, 205, 225),
    'navy': (22, 34, 90), 'gold': (212, 165, 40), 'lime': (165, 215, 50), 'beige': (235, 220, 190),
    'turquoise': (60, 200, 185), 'maroon': (120, 25, 40), 'magenta': (215, 45, 150),
    'lavender': (195, 175, 235), 'mint': (175, 230, 200), 'silver': (190, 195, 205), 'peach': (252, 200, 165),
    'cream': (250, 240, 215), 'violet': (120, 70, 220), 'white': (255, 255, 255),
}
TINTS = ['red', 'orange', 'yellow', 'green', 'blue', 'purple', 'pink', 'brown', 'black', 'gray', 'teal', 'cyan',
         'navy', 'gold', 'lime', 'turquoise', 'maroon', 'magenta', 'silver', 'violet']
COLOUR_WORDS = set(COLOURS) | {'grey', 'golden', 'rainbow', 'colorful', 'dark', 'light'}

# name: phrases, sky top and bottom, ground top and bottom, horizon from and to (1: no ground), hills, stars, sun or moon
SCENES = {
    'grass': (['in a grassy field', 'on the grass', 'in a meadow', 'in a park'],
              (95, 170, 240), (195, 228, 250), (120, 195, 85), (60, 140, 50), (.55, .75), .03, 0, None),
    'night': (['at night', 'under the stars', 'at night under a starry sky'],
              (10, 12, 42), (42, 44, 96), (24, 32, 46), (10, 14, 24), (.7, .85), .03, 1, (240, 238, 215)),
    'space': (['in space', 'in outer space'],
              (6, 6, 22), (24, 12, 46), (24, 12, 46), (24, 12, 46), (1, 1), 0, 1, None),
    'beach': (['on the beach', 'at the beach'],
              (80, 175, 240), (190, 230, 250), (242, 218, 155), (222, 190, 120), (.6, .75), .015, 0, (255, 236, 140)),
    'sea': (['on the sea', 'on the ocean', 'at sea'],
            (110, 185, 240), (205, 232, 250), (40, 125, 195), (12, 62, 125), (.5, .7), .008, 0, None),
    'underwater': (['underwater', 'under the sea', 'in the ocean depths'],
                   (50, 160, 210), (6, 42, 95), (6, 42, 95), (6, 42, 95), (1, 1), 0, 0, None),
    'sunset': (['at sunset', 'in front of a sunset'],
               (85, 45, 120), (252, 145, 65), (70, 44, 60), (30, 20, 32), (.65, .8), .02, 0, (255, 225, 130)),
    'desert': (['in the desert', 'on a sand dune'],
               (120, 190, 235), (250, 232, 200), (228, 176, 98), (190, 130, 62), (.5, .7), .05, 0, (255, 240, 170)),
    'snow': (['in the snow', 'on a snowy field', 'in winter'],
             (165, 198, 226), (216, 231, 242), (250, 252, 255), (214, 226, 240), (.55, .75), .04, 0, None),
    'room': (['in a room', 'on a wooden floor'],
             (238, 224, 200), (228, 210, 182), (168, 118, 76), (130, 86, 52), (.65, .8), 0, 0, None),
    'forest': (['in the forest', 'in a forest'],
               (70, 125, 75), (125, 172, 105), (78, 98, 48), (42, 62, 28), (.6, .8), .05, 0, None),
    'sky': (['in the sky', 'in a blue sky', 'in the clouds'],
            (95, 165, 240), (212, 236, 255), (212, 236, 255), (212, 236, 255), (1, 1), 0, 0, None),
    'moon': (['on the moon'],
             (8, 8, 16), (18, 18, 30), (165, 165, 170), (112, 112, 118), (.55, .75), .04, 1, None),
    'mars': (['on mars', 'on a red planet'],
             (205, 125, 85), (236, 178, 140), (186, 86, 46), (122, 52, 28), (.55, .75), .05, 0, None),
    'dawn': (['at dawn', 'at sunrise', 'in the morning'],
             (250, 190, 170), (255, 232, 190), (120, 150, 110), (80, 110, 80), (.6, .75), .03, 0, (255, 248, 215)),
    'mountain': (['on a mountain', 'in the mountains'],
                 (120, 180, 235), (215, 232, 245), (110, 120, 135), (70, 82, 95), (.45, .7), .12, 0, None),
}
PLACES = {'top left': (-.5, -.5), 'top right': (.5, -.5), 'bottom left': (-.5, .5), 'bottom right': (.5, .5),
          'center': (0, 0), 'left': (-.5, 0), 'right': (.5, 0), 'top': (0, -.5), 'bottom': (0, .5)}
NUMBERS = {2: ['two', 'a pair of', '2'], 3: ['three', '3'], 4: ['four', '4']}
LAYOUTS = {2: [(-.5, 0), (.5, 0)], 3: [(-.5, .5), (.5, .5), (0, -.5)], 4: [(-.5, -.5), (.5, -.5), (-.5, .5), (.5, .5)]}
DRAWN_FROM = {'fluent-3d', 'fluent-emoji', 'fluent-emoji-flat', 'noto', 'twemoji'}
# Mirrored, these would be wrong.
NEVER_MIRRORED = re.compile(r'\b(left|right|flag|clock|oclock|button|letter|keycap|arrow|sign|thirty|number|input|symbol|'
                            r'square|circle|calendar|book|newspaper|japanese|squared|text|abc|logo|card|of|to|backhand)\b')

# The contact sheet: 24 things that are in the data, and 24 combinations that are not.
SEEN_PROMPTS = ['red apple', 'cat face, 3d emoji', 'dog face', 'rocket, 3d emoji', 'pizza', 'castle', 'palm tree', 'guitar',
                'unicorn', 'octopus', 'hamburger', 'robot', 'owl', 'penguin', 'strawberry', 'sailboat',
                'snowman, glossy emoji', 'ghost, flat emoji', 'crown', 'dragon', 'sunflower', 'bicycle', 'dolphin', 'smiling face with sunglasses']
UNSEEN = [('colour', 'cat', 'purple'), ('colour', 'strawberry', 'blue'), ('colour', 'elephant', 'pink'), ('colour', 'car', 'lime'),
          ('colour', 'fish', 'gold'), ('colour', 'penguin', 'red'), ('colour', 'whale', 'orange'), ('colour', 'owl', 'teal'),
          ('count', 'rocket', '3'), ('count', 'owl', '2'), ('count', 'strawberry', '4'), ('count', 'penguin', '3'),
          ('count', 'robot', '2'), ('count', 'crown', '4'), ('count', 'ghost', '3'), ('count', 'dragon', '2'),
          ('scene', 'cat', 'space'), ('scene', 'penguin', 'desert'), ('scene', 'robot', 'beach'), ('scene', 'castle', 'underwater'),
          ('scene', 'elephant', 'moon'), ('scene', 'snowman', 'sunset'), ('scene', 'whale', 'sky'), ('scene', 'owl', 'snow')]
_unseen = {}
for _kind, _noun, _what in UNSEEN:
    _unseen.setdefault((_kind, _what), set()).add(_noun)


def held(kind, name, what):
    """Whether a combination is kept from training. kind is 'colour', 'count' or 'scene'."""
    if _unseen.get((kind, what), set()) & set(words_of(name)):
        return True
    return zlib.crc32(f'{kind}|{name}|{what}'.encode()) % 10 == 0


def prompt_for(kind, name, what):
    """The plain prompt for a combination."""
    if kind == 'colour':
        return f'{"golden" if what == "gold" else what} {name}'
    if kind == 'count':
        return f'{NUMBERS[int(what)][0]} {plural(name)}'
    if kind == 'scene':
        return f'{article(name)} {name} {SCENES[what][0][0]}'
    return name


def sheet_prompts():
    return SEEN_PROMPTS + [prompt_for(*u) for u in UNSEEN]


def words_of(text):
    return re.findall('[a-z0-9]+', text.lower())


def template_words():
    """Every word that captions have besides names and keywords, for the vocabulary."""
    found = set(COLOUR_WORDS)
    for scene in SCENES.values():
        for phrase in scene[0]:
            found.update(words_of(phrase))
    for place in PLACES:
        found.update(words_of(place))
    for phrases in NUMBERS.values():
        for phrase in phrases:
            found.update(words_of(phrase))
    found.update(words_of('a an the of and next to beside above on top with small tiny big large in corner background solid '
                          'plain gradient to picture image photo drawing illustration emoji icon painted colored left side '
                          'right below under color colour 3d glossy flat cartoon'))
    return sorted(found)


class Vocab:
    """Words to numbers. Rows below `learned` have an embedding of their own, the others a word vector only."""

    def __init__(self, folder):
        with open(os.path.join(folder, 'vocab.json')) as f:
            v = json.load(f)
        self.learned = v['learned']
        self.ids = {w: i + 2 for i, w in enumerate(v['words'])}

    def encode(self, text):
        out = np.zeros(TEXT_LENGTH, np.int64)
        for j, w in enumerate(words_of(text)[:TEXT_LENGTH]):
            i = self.ids.get(w)
            if i is None and w.endswith('s'):
                i = self.ids.get(w[:-1])
            if i is None and w.endswith('es'):
                i = self.ids.get(w[:-2])
            out[j] = UNKNOWN if i is None else i
        return out


def article(s):
    return 'an' if s[:1] in 'aeiou' else 'a'


def plural(s):
    if s.endswith('s'):
        return s
    if s.endswith('y') and s[-2:-1] not in 'aeiou':
        return s[:-1] + 'ies'
    return s + ('es' if s.endswith(('x', 'ch', 'sh')) else 's')


def read_meta(folder, sets=None):
    """The descriptions of all sprites. Those outside `sets` stay in the list, with weight 0."""
    import gzip
    with gzip.open(os.path.join(folder, 'meta.jsonl.gz'), 'rt') as f:
        meta = [json.loads(line) for line in f]
    for m in meta:
        if sets is not None and m['set'] not in sets:
            m['w'] = 0.
    return meta


# How often each kind of scene is made for training.
MIX = {'plain': .56, 'colour': .15, 'count': .13, 'pair': .12, 'corner': .04}
SLOTS = 4


class Scenes:
    """Makes random scenes: sprites with places, a background, a caption, and what the judge has to find."""

    def __init__(self, meta, vocab, seed, mix=None, ground=None, everything=False):
        """mix and ground say how often there is what; everything: make held combinations too, for the judge."""
        self.meta, self.vocab, self.ground, self.everything = meta, vocab, ground, everything
        self.rng = random.Random(seed)
        self.draws = np.random.RandomState(seed % (2 ** 31))
        weights = np.array([m['w'] for m in meta], np.float64)
        self.cumulated = np.cumsum(weights / weights.sum())
        self.simple = [i for i, m in enumerate(meta) if m['w'] > 0 and len(m['name'].split()) <= 3
                       and m['group'] not in ('flags', 'symbols', 'people body')]
        if not self.simple:
            self.simple = [i for i, m in enumerate(meta) if m['w'] > 0]
        self.mix = mix or MIX

    def pick(self):
        return min(int(np.searchsorted(self.cumulated, self.draws.rand())), len(self.meta) - 1)

    def allowed(self, kind, name, options):
        """One of the options that the name may have."""
        for _ in range(8):
            what = self.rng.choice(options)
            if self.everything or not held(kind, name, str(what)):
                return what
        return None

    def name(self, m, short=False):
        r = self.rng
        name, keywords = m['name'], m['kw']
        p = r.random()
        if short or not keywords or p < .66:
            s = name
        elif p < .78:
            s = name + ' ' + r.choice(keywords)
        elif p < .92:
            s = r.choice(keywords[:6])
        else:
            s = r.choice(keywords) + ' ' + name
        if not short and m['sub'] and r.random() < .05:
            s += ' ' + m['sub']
        if m['extra'] and r.random() < .8:
            s = s + ' with ' + m['extra'] if r.random() < .5 else m['extra'] + ' ' + s
        return s

    def with_article(self, s):
        r = self.rng.random()
        if r < .45:
            return s
        return 'the ' + s if r < .55 else article(s) + ' ' + s

    def styled(self, m, s):
        r = self.rng
        if r.random() < .55:
            return self.with_article(s) if r.random() < .6 else s
        style, k = r.choice(m['style']), r.random()
        if k < .3:
            return style + ' of ' + self.with_article(s)
        if k < .5:
            return s + ' ' + style
        if k < .9:
            return self.with_article(s) + ', ' + style
        return style + ' ' + s

    def near(self, colour, spread):
        return [min(255, max(0, c + self.rng.uniform(-spread, spread))) for c in colour]

    def sample(self):
        """-> slots [(sprite, scale, x, y, mirror, tint)], background, caption, labels (sprite, colour, count, scene)."""
        r = self.rng
        kind = r.choices(list(self.mix), list(self.mix.values()))[0]
        i = self.pick()
        if kind in ('count', 'pair') or kind == 'colour' and r.random() < .7:
            i = r.choice(self.simple)
        m = self.meta[i]
        mirror = -1 if r.random() < .35 and not NEVER_MIRRORED.search(m['name']) else 1
        # Whole pixels keep sprites sharp: one is 2/128.
        dx, dy = r.randint(-2, 2) / 64., r.randint(-2, 2) / 64.
        colour, count, slots, ground = None, 1, [], .22
        if kind == 'colour':
            colour = None if set(words_of(m['name'])) & COLOUR_WORDS else self.allowed('colour', m['name'], TINTS)
        elif kind == 'count':
            count = self.allowed('count', m['name'], [2, 3, 4]) or 1
        if kind == 'pair':
            caption, slots = self.pair(i, dx, dy)
            ground = .35
        elif kind == 'corner':
            place = r.choice(list(PLACES))
            slots = [(i, .5, *PLACES[place], mirror, None)]
            phrase = [' in the %s corner', ' on the %s', ' at the %s'] if ' ' in place else [' on the %s', ' in the %s', ' at the %s']
            caption = r.choice(['small ', 'tiny ', 'little ']) + self.name(m, True) + r.choice(phrase) % place
            ground = .35
        elif count > 1:
            caption = r.choice(NUMBERS[count]) + ' ' + plural(m['name'])
            if r.random() < .5:
                caption += ', ' + r.choice(m['style'])
            slots = [(i, .5, x, y, 1, None) for x, y in LAYOUTS[count]]
            ground = .3
        elif colour:
            word = 'golden' if colour == 'gold' and r.random() < .5 else colour
            caption = self.styled(m, word + ' ' + self.name(m, True))
            slots = [(i, 1., dx, dy, mirror, self.near(COLOURS[colour], 8))]
        else:
            caption = self.styled(m, self.name(m))
            slots = [(i, 1., dx, dy, mirror, None)]
        background, words, scene = self.background(m['name'], ground if self.ground is None else self.ground)
        caption += words
        if r.random() < .04:
            caption = r.choice(['a picture of ', 'an image of ', 'a drawing of ', 'an illustration of ']) + caption
        return slots, background, caption, (i, colour, count, scene)

    def pair(self, i, dx, dy):
        r = self.rng
        j = r.choice(self.simple)
        m, n = self.meta[i], self.meta[j]
        a, b = self.with_article(self.name(m, True)), self.with_article(self.name(n, True))
        how, scale = r.random(), r.choice([.5, .5, .53, .47])
        if how < .6:
            slots = [(i, scale, -.5 + dx, r.uniform(-.1, .1), 1, None), (j, scale, .5 + dx, r.uniform(-.1, .1), 1, None)]
            caption = r.choice([f'{a} and {b}', f'{a} next to {b}', f'{a} beside {b}',
                                f'{a} on the left and {b} on the right', f'{a} with {b}'])
        elif how < .85:
            slots = [(i, scale, r.uniform(-.1, .1), -.5, 1, None), (j, scale, r.uniform(-.1, .1), .5, 1, None)]
            caption = r.choice([f'{a} above {b}', f'{a} on top of {b}', f'{b} below {a}', f'{b} under {a}'])
        else:
            slots = [(i, 1., dx, dy, 1, None), (j, .45, .5, .5, 1, None)]
            caption = f'{a} with a small {self.name(n, True)}'
        if m['set'] == n['set'] and r.random() < .7:
            caption += ', ' + r.choice(m['style'])
        return caption, slots

    def background(self, name, share):
        """-> what to paint, the words for it, the scene's name ('' for none)."""
        r = self.rng
        white = [255, 255, 255]
        bg = dict(colours=[white] * 4, horizon=1., hills=0., waves=1., phase=0., stars=0., disc=None)
        if r.random() >= share:
            return bg, (' on a white background' if r.random() < .06 else ''), ''
        z = r.random()
        if z < .40:
            word = r.choice(list(COLOURS))
            bg['colours'] = [self.near(COLOURS[word], 10)] * 4
            return bg, r.choice([' on a %s background', ', %s background', ' on %s', ' on a plain %s background']) % word, ''
        if z < .50:
            one, two = r.sample(list(COLOURS), 2)
            bg['colours'] = [self.near(COLOURS[one], 8), self.near(COLOURS[two], 8)] * 2
            return bg, r.choice([' on a %s to %s gradient background', ' on a %s and %s gradient']) % (one, two), ''
        scene = self.allowed('scene', name, list(SCENES))
        if not scene:
            return bg, '', ''
        phrases, *colours, horizon, hills, stars, disc = SCENES[scene]
        bg.update(colours=[self.near(c, 10) for c in colours], horizon=r.uniform(*horizon) if horizon[0] < 1 else 1.,
                  hills=hills * r.uniform(.4, 1.2), waves=r.uniform(.5, 2.), phase=r.uniform(0, 6.28), stars=float(stars))
        if disc and r.random() < .7:
            bg['disc'] = (r.uniform(12, 116), r.uniform(8, max(10., bg['horizon'] * 128 - 4)), r.uniform(6, 13), disc)
        return bg, ' ' + r.choice(phrases), scene

    def batch(self, n, empty=.10):
        """n scenes as arrays. A share of `empty` has the empty prompt, for guidance."""
        o = dict(count=np.zeros(n, np.int64), sprite=np.zeros((n, SLOTS), np.int64), place=np.zeros((n, SLOTS, 4), np.float32),
                 tint=np.zeros((n, SLOTS, 4), np.float32), ground=np.zeros((n, 4, 3), np.float32),
                 shape=np.zeros((n, 5), np.float32), disc=np.zeros((n, 7), np.float32),
                 tokens=np.zeros((n, TEXT_LENGTH), np.int64), labels=np.zeros((n, 4), np.int64))
        tint_ids = {t: i + 1 for i, t in enumerate(TINTS)}
        scene_ids = {s: i + 1 for i, s in enumerate(SCENES)}
        for b in range(n):
            slots, bg, caption, (i, colour, count, scene) = self.sample()
            o['count'][b] = len(slots)
            for s, (sprite, scale, x, y, mirror, tint) in enumerate(slots):
                o['sprite'][b, s] = sprite
                o['place'][b, s] = (scale, x, y, mirror)
                if tint is not None:
                    o['tint'][b, s] = (*[c / 255. for c in tint], 1.)
            o['ground'][b] = np.array(bg['colours'], np.float32) / 255.
            o['shape'][b] = (bg['horizon'], bg['hills'], bg['waves'], bg['phase'], bg['stars'])
            if bg['disc']:
                x, y, radius, c = bg['disc']
                o['disc'][b] = (x, y, radius, c[0] / 255., c[1] / 255., c[2] / 255., 1.)
            if self.rng.random() >= empty:
                o['tokens'][b] = self.vocab.encode(caption)
            o['labels'][b] = (i, tint_ids.get(colour, 0), count - 1, scene_ids.get(scene, 0))
        return o
