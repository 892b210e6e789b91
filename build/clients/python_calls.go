package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"atelier/build/apispec"
)

// operations returns the module with the method, path and rules of each call.
func (p python) operations(all []operation) []byte {
	var b bytes.Buffer
	b.WriteString(pythonHead)
	b.WriteString(`"""Method, path and rules of each operation."""

from ._rules import Operation

`)
	for _, o := range all {
		if isMedia(o) || isResumable(o) {
			continue
		}
		fmt.Fprintf(&b, "%s = Operation(\n", constantName(o.ID))
		fmt.Fprintf(&b, "    method=%q,\n    path=%q,\n", o.Method, o.Path)
		var query []string
		for _, f := range o.parameters {
			if f.In == "query" {
				query = append(query, fmt.Sprintf("%q,", f.Name))
			}
		}
		if len(query) > 0 {
			fmt.Fprintf(&b, "    query=(\n        %s\n    ),\n", strings.Join(query, "\n        "))
		}
		for _, name := range []string{"X-Device-Id", "If-Match", "Idempotency-Key"} {
			if o.has(name) {
				fmt.Fprintf(&b, "    headers={%q: %q},\n", pythonName(name), name)
			}
		}
		flags := []struct {
			name string
			is   bool
		}{
			{"selects_team", o.team},
			{"repeatable", isRepeatable(o)},
			{"has_key", o.has("Idempotency-Key")},
			{"signed", o.Security == nil},
		}
		for _, f := range flags {
			if f.is {
				fmt.Fprintf(&b, "    %s=True,\n", f.name)
			}
		}
		b.WriteString(")\n")
	}
	return b.Bytes()
}

// calls returns the module with a class for each resource and a method for each
// of its operations.
func (p python) calls(all []operation) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(pythonHead)
	b.WriteString(`"""The calls of the interface, by resource."""

from __future__ import annotations

from typing import Dict, List, Optional, cast

from .. import _operations as operations
from .. import _types as types
from .pages import AsyncPages
from .session import AsyncSession
from .streams import AsyncEvents
`)
	for _, r := range resources {
		fmt.Fprintf(&b, "\n\nclass %s:\n    \"\"\"%s\"\"\"\n", className(r), r.doc)
		b.WriteString("\n    def __init__(self, session: AsyncSession) -> None:\n        self._session = session\n")
		for _, c := range r.calls {
			i := slices.IndexFunc(all, func(o operation) bool { return o.ID == c.operation })
			if err := p.method(&b, c.name, all[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", c.operation, err)
			}
		}
	}
	return b.Bytes(), nil
}

// className is AsyncBoards, or AsyncRunsCalls for a resource that code by hand extends.
func className(r resource) string {
	if r.name == "events" {
		return "AsyncEventStreams" // AsyncEvents is the stream itself
	}
	name := "Async"
	for _, word := range strings.Split(r.name, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	if r.extended {
		name += "Calls"
	}
	return name
}

// argument is a parameter of a method.
type argument struct {
	name     string
	kind     string
	required bool
	inBody   bool
	inPath   bool
}

func (p python) method(b *bytes.Buffer, name string, o operation) error {
	arguments, err := p.arguments(o)
	if err != nil {
		return err
	}
	result, kind := p.resultOf(o)
	async := "async "
	if kind == pagesResult || kind == eventsResult {
		async = ""
	}

	fmt.Fprintf(b, "\n    %sdef %s(\n        self,\n", async, name)
	keywords := false
	for _, a := range arguments {
		if !a.inPath && !keywords {
			b.WriteString("        *,\n")
			keywords = true
		}
		if a.required {
			fmt.Fprintf(b, "        %s: %s,\n", a.name, a.kind)
		} else {
			fmt.Fprintf(b, "        %s: %s = None,\n", a.name, optionalOnce(a.kind))
		}
	}
	fmt.Fprintf(b, "    ) -> %s:\n", result)
	writeDoc(b, "        ", o.Summary+".\n\n"+strings.TrimSpace(o.Description))

	values := pythonDict(arguments, false)
	body := ""
	if o.RequestBody != nil {
		body = ",\n            body=" + pythonDict(arguments, true)
	}
	send := fmt.Sprintf("(\n            operations.%s,\n            %s%s,\n        )", constantName(o.ID), values, body)
	switch kind {
	case pagesResult:
		fmt.Fprintf(b, "        return AsyncPages(\n            self._session,\n            operations.%s,\n            %s,\n        )\n", constantName(o.ID), values)
	case eventsResult:
		fmt.Fprintf(b, "        return AsyncEvents(\n            self._session,\n            operations.%s,\n            %s,\n        )\n", constantName(o.ID), values)
	case noResult:
		fmt.Fprintf(b, "        await self._session.call%s\n", send)
	default:
		fmt.Fprintf(b, "        answer = await self._session.call%s\n        return cast(%s, answer)\n", send, result)
	}
	return nil
}

// arguments returns the parameters of a method: those of the path first, and
// required ones before others.
func (p python) arguments(o operation) ([]argument, error) {
	var all []argument
	for _, f := range o.parameters {
		switch f.Name {
		case "If-None-Match", "Last-Event-ID", "format":
			continue
		}
		kind, err := p.inline(f.Schema, false)
		if err != nil {
			return nil, err
		}
		all = append(all, argument{
			name:     pythonName(f.Name),
			kind:     prefixTypes(kind),
			required: f.Required && f.Name != "Idempotency-Key",
			inPath:   f.In == "path",
		})
	}
	if o.RequestBody != nil {
		s := p.ResolveSchema(o.RequestBody.Content.Get("application/json").Schema)
		for _, f := range s.Properties {
			kind, err := p.inline(f.Value, false)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(all, func(a argument) bool { return a.name == f.Key }) {
				return nil, fmt.Errorf("%s is both a parameter and a field of the body", f.Key)
			}
			all = append(all, argument{
				name:     f.Key,
				kind:     prefixTypes(kind),
				required: slices.Contains(s.Required, f.Key),
				inBody:   true,
			})
		}
	}
	slices.SortStableFunc(all, func(a, c argument) int { return rank(a) - rank(c) })
	return all, nil
}

func rank(a argument) int {
	switch {
	case a.inPath:
		return 0
	case a.required:
		return 1
	}
	return 2
}

// resultKind says how a method gives its result.
type resultKind int

const (
	recordResult resultKind = iota
	noResult
	pagesResult
	eventsResult
)

func (p python) resultOf(o operation) (string, resultKind) {
	content := p.result(o)
	if len(content) == 0 {
		return "None", noResult
	}
	if content[0].Key == "text/event-stream" {
		return "AsyncEvents", eventsResult
	}
	name := apispec.RefName(content.Get("application/json").Schema.Ref)
	items := p.Components.Schemas.Get(name).Properties.Get("data")
	if items == nil {
		return "types." + name, recordResult
	}
	return fmt.Sprintf("AsyncPages[types.%s, types.%s]", apispec.RefName(items.Items.Ref), name), pagesResult
}

func pythonDict(arguments []argument, body bool) string {
	var b strings.Builder
	for _, a := range arguments {
		if a.inBody == body {
			fmt.Fprintf(&b, "                %q: %s,\n", a.name, a.name)
		}
	}
	if b.Len() == 0 {
		return "{}"
	}
	return "{\n" + b.String() + "            }"
}

var typeName = regexp.MustCompile(`"[^"]*"|\b[A-Z]\w*`)

// prefixTypes turns the names of records into names of the module types.
func prefixTypes(expression string) string {
	return typeName.ReplaceAllStringFunc(expression, func(name string) string {
		switch name {
		case "Any", "Dict", "List", "Literal", "Optional", "Union", "None":
			return name
		}
		if name[0] == '"' {
			return name
		}
		return "types." + name
	})
}

func optionalOnce(kind string) string {
	if strings.HasPrefix(kind, "Optional[") {
		return kind
	}
	return "Optional[" + kind + "]"
}

func pythonName(name string) string {
	name = strings.TrimPrefix(name, "X-")
	return strings.ToLower(strings.ReplaceAll(name, "-", "_"))
}

var wordStart = regexp.MustCompile(`([a-z])([A-Z])`)

// constantName is GET_TOOL for getTool.
func constantName(id string) string {
	return strings.ToUpper(wordStart.ReplaceAllString(id, "${1}_$2"))
}
