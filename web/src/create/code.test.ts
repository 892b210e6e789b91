import { describe, expect, test } from 'vitest';
import type { Call } from './call';
import { type Language, writeCode } from './code';
import { quoteShell } from './codeShell';

const call: Call = {
  service: 'https://atelier.example',
  toolId: 'R5AAHOIpk8BjpovUBFPs',
  slug: 'sketch',
  hash: 'v1:abc',
  inputs: {
    prompt: `an owl's "night" $HOME \\ 🦉`,
    seed: 5,
    bright: true,
    size: { width: 512, height: 256 },
    picture: { kind: 'LIBRARY_REF', id: 'r-1:0' },
    pictures: [{ kind: 'UPLOAD_REF', id: 'u1' }],
    tags: ['a', 'b'],
  },
  count: 4,
  teamId: 'team1',
};
const languages: Language[] = ['curl', 'go', 'python', 'javascript', 'shell'];

describe('samples', () => {
  test('no sample has a token, all take it from the environment', () => {
    for (const language of languages.filter((one) => one !== 'shell')) {
      expect(writeCode(language, call)).toContain('ATELIER_TOKEN');
    }
  });

  test('the body of the curl sample is the request', () => {
    const body = writeCode('curl', { ...call, inputs: { prompt: 'owl' } }).match(/-d '([\s\S]*?)'\n/)?.[1] ?? '';

    expect(JSON.parse(body)).toEqual({
      tool_id: call.toolId,
      tool_fields_hash: 'v1:abc',
      inputs: { prompt: 'owl' },
      num_results: 4,
    });
    expect(writeCode('curl', call)).toContain('https://atelier.example/api/v2/generate?team_id=team1');
  });

  test('the command line writes values as the command reads them', () => {
    expect(writeCode('shell', call)).toBe(
      `atelier generate sketch 'prompt=an owl'\\''s "night" $HOME \\ 🦉' seed=5 bright=true size=512x256 ` +
        'picture=result:r-1:0 pictures=upload:u1 tags=a,b --results 4 --team team1 --service https://atelier.example\n',
    );
  });

  test('Python has its own words for true and none', () => {
    const code = writeCode('python', { ...call, inputs: { bright: true, dark: false, none: null } });

    expect(code).toContain('"inputs": {"bright": True, "dark": False, "none": None},');
    expect(code).toContain('TEAM = "?team_id=team1"');
  });

  test('Go uses the client, with references by their functions', () => {
    const code = writeCode('go', call);

    expect(code).toContain('\t\t"picture":  client.LibraryInput("r-1:0"),');
    expect(code).toContain('\t\t"pictures": []any{client.UploadInput("u1")},');
    expect(code).toContain('\t\t"size":     map[string]any{"width": 512, "height": 256},');
    expect(code).toContain('TeamID: "team1",');
    expect(code).toMatch(/Results: +4,/);
  });

  test('a tool that makes one result has no number of results', () => {
    for (const language of languages) {
      expect(writeCode(language, { ...call, count: undefined })).not.toMatch(/num_results|Results:|--results/);
    }
  });

  test('halves of characters do not break a program', () => {
    for (const language of languages) {
      expect(writeCode(language, { ...call, inputs: { prompt: 'a\ud83e' } })).toContain('a\ufffd');
    }
  });
});

test('words are quoted for the shell where needed', () => {
  expect(quoteShell('seed=5')).toBe('seed=5');
  expect(quoteShell('a b')).toBe("'a b'");
  expect(quoteShell("it's")).toBe("'it'\\''s'");
  expect(quoteShell('')).toBe("''");
});
