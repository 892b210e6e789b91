"""The icon sets that the data set is made of, with licence and author."""

import json
import os
from typing import NamedTuple

ICONIFY = 'iconify-json-2.2.535'
HERE = os.path.dirname(os.path.abspath(__file__))


class Set(NamedTuple):
    """One icon set. weight says how often its pictures are drawn in training,
    styles are the words a caption uses for its look."""

    name: str
    weight: float
    styles: list
    licence: str
    licence_link: str
    author: str
    link: str
    package: str


def read_sets(npm, chosen=None):
    """The sets by name, in the order of the data set; only those in chosen, a
    list separated by commas, if it is given."""
    with open(os.path.join(npm, ICONIFY, 'package', 'collections.json'), encoding='utf-8') as file:
        collections = json.load(file)
    with open(os.path.join(HERE, 'sets.json'), encoding='utf-8') as file:
        listed = json.load(file)
    sets = {}
    for entry in listed:
        origin = entry.get('origin') or iconify_origin(collections[entry['name']], entry['name'])
        sets[entry['name']] = Set(entry['name'], entry['weight'], entry['styles'], **origin)
    if chosen is None:
        return sets
    wanted = chosen.split(',')
    unknown = [name for name in wanted if name not in sets]
    if unknown:
        raise SystemExit(f'no such set: {", ".join(unknown)}')
    return {name: source for name, source in sets.items() if name in wanted}


def iconify_origin(collection, name):
    """Licence and author as the iconify package records them."""
    licence = collection['license']
    return {
        'licence': licence.get('spdx') or licence['title'],
        'licence_link': licence.get('url', ''),
        'author': collection['author']['name'],
        'link': collection['author'].get('url', ''),
        'package': f'npm @iconify/json 2.2.535, set {name}',
    }
