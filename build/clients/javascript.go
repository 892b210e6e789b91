package main

import (
	"bytes"
	"fmt"
	"strings"
)

// javascriptFiles returns the generated file of the JavaScript library that
// openapi-typescript, which writes its types, does not make: the rules by which
// calls are sent.
func javascriptFiles(d document) ([]file, error) {
	operations := d.operations()
	if err := checkResources(operations); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`// Generated from api/openapi.yaml by build/clients. Do not edit.

/** Rule is the method and the path of an operation, and how it is sent. */
export interface Rule {
  method: string;
  path: string;
  /** Whether repeating the request does no harm when it is unknown if the service has received it. */
  isSafe?: boolean;
  /** Whether the operation takes an idempotency key. */
  isKeyed?: boolean;
  /** Whether team_id selects the account that the call acts for. */
  hasAccount?: boolean;
  /** Whether the operation needs no credential. */
  isPublic?: boolean;
}

/** rules has every operation of the API. */
export const rules = {
`)
	for _, o := range operations {
		if isMedia(o) {
			continue
		}
		fmt.Fprintf(&b, "  %s: { method: '%s', path: '%s'", o.ID, o.Method, o.Path)
		for _, f := range []struct {
			name string
			is   bool
		}{
			{"isSafe", isRepeatable(o)},
			{"isKeyed", o.has("Idempotency-Key")},
			{"hasAccount", o.team},
			{"isPublic", o.Security != nil},
		} {
			if f.is {
				fmt.Fprintf(&b, ", %s: true", f.name)
			}
		}
		b.WriteString(" },\n")
	}
	b.WriteString("} satisfies Record<string, Rule>;\n")
	return []file{{"clients/js/src/operations.ts", b.Bytes()}}, nil
}

// camelCase is listMembers for list_members.
func camelCase(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	for word := range strings.SplitSeq(rest, "_") {
		switch word {
		case "":
		case "openapi":
			first += "OpenAPI"
		default:
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}
