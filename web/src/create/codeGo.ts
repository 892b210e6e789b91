import { isMedia, isSize } from '../form/fields';
import { type Call, jsonOf, wellFormed } from './call';

/** writeGo writes a run as a Go program that uses the client package. */
export function writeGo(call: Call): string {
  const service: Array<[string, string]> = [
    ['URL', jsonOf(call.service)],
    ['Token', 'os.Getenv("ATELIER_TOKEN")'],
    ...(call.teamId ? [['TeamID', jsonOf(call.teamId)] as [string, string]] : []),
  ];
  const request: Array<[string, string]> = [
    ['Tool', jsonOf(call.toolId)],
    ['Inputs', 'inputs'],
    ...(call.count === undefined ? [] : [['Results', String(call.count)] as [string, string]]),
  ];

  return `package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"atelier/client"
)

func main() {
	ctx := context.Background()
	service, err := client.New(client.Options{
${alignGo(service, '\t\t')}	})
	if err != nil {
		log.Fatal(err)
	}

	inputs := ${goOf(wellFormed(call.inputs), '\t')}
	run, err := service.Runs.Create(ctx, client.RunRequest{
${alignGo(request, '\t\t')}	})
	if err != nil {
		log.Fatal(err)
	}
	run, err = run.Wait(ctx, client.Watch{})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(run.Status)
	for _, output := range run.Outputs {
		fmt.Println(*output.URL)
	}
}
`;
}

/** alignGo writes entries of a composite literal one below the other, with their values in a column as gofmt has them. */
function alignGo(entries: ReadonlyArray<readonly [string, string]>, indent: string): string {
  const width = Math.max(...entries.map(([key]) => key.length));

  return entries.map(([key, value]) => `${indent}${key}:${' '.repeat(width - key.length + 1)}${value},\n`).join('');
}

function goOf(value: unknown, indent: string): string {
  if (isMedia(value)) {
    return `client.${value.kind === 'LIBRARY_REF' ? 'LibraryInput' : 'UploadInput'}(${jsonOf(value.id)})`;
  }
  if (value === null || value === undefined) {
    return 'nil';
  }
  if (Array.isArray(value)) {
    return `[]any{${value.map((one) => goOf(one, indent)).join(', ')}}`;
  }
  if (typeof value === 'object') {
    const inner = `${indent}\t`;
    const entries = Object.entries(value).map(([key, one]) => [jsonOf(key), goOf(one, inner)] as const);
    if (entries.length === 0 || isSize(value)) {
      return `map[string]any{${entries.map((entry) => entry.join(': ')).join(', ')}}`;
    }
    return `map[string]any{\n${alignGo(entries, inner)}${indent}}`;
  }
  return jsonOf(value);
}
