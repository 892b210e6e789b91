import { expect, test } from 'vitest';
import type { Tool } from './catalog';
import { filterTools, tagsOf } from './toolfilter';

const tag = (id: string, type = 'OTHER') => ({ id, type, label: id });
const tool = (name: string, ...tags: ReturnType<typeof tag>[]) =>
  ({ id: name, slug: name, name, description: `Makes ${name}s`, tool_tags: tags }) as unknown as Tool;
const tools = [
  tool('sketch', tag('image', 'MEDIA'), tag('tiny')),
  tool('speech', tag('sound', 'MEDIA')),
  tool('upscale', tag('image', 'MEDIA')),
];

test('all words and all tags must match', () => {
  expect(filterTools(tools, 'S makes', []).map((one) => one.name)).toEqual(['sketch', 'speech', 'upscale']);
  expect(filterTools(tools, 'tiny', []).map((one) => one.name)).toEqual(['sketch']);
  expect(filterTools(tools, '', ['image', 'tiny']).map((one) => one.name)).toEqual(['sketch']);
  expect(filterTools(tools, 'nothing', [])).toEqual([]);
});

test('tags of media come first, then common ones', () => {
  expect(tagsOf(tools).map((one) => one.id)).toEqual(['image', 'sound', 'tiny']);
});
