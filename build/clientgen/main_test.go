package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	openapi "atelier/api"
)

// TestEveryOperationHasALine compares the table with the document, and the
// table with the methods of the client package.
func TestEveryOperationHasALine(t *testing.T) {
	t.Parallel()
	doc, err := readDocument(openapi.Document)
	if err != nil {
		t.Fatal(err)
	}
	endpoints := doc.operationsByID()
	methods := clientMethods(t)
	lines := map[string]bool{}
	for _, o := range operations {
		if lines[o.id] {
			t.Errorf("%s has two lines", o.id)
		}
		lines[o.id] = true
		if endpoints[o.id] == nil {
			t.Errorf("%s is not in the document", o.id)
		}
		for _, method := range []string{o.method, o.all} {
			if name := o.group + "Calls." + method; method != "" && !methods[name] {
				t.Errorf("%s: the client has no method %s", o.id, name)
			}
		}
	}
	for id := range endpoints {
		if !lines[id] {
			t.Errorf("%s has no line in operations.go", id)
		}
	}
}

// clientMethods returns the methods of the client package, as Type.Method.
func clientMethods(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../client/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("files = %v, %v", files, err)
	}
	all := map[string]bool{}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				all[star.X.(*ast.Ident).Name+"."+fn.Name.Name] = true
			}
		}
	}
	return all
}

// TestFilesAreFresh generates the files anew and compares them.
func TestFilesAreFresh(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writeFiles(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"types.gen.go", "calls.gen.go"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../client", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("client/%s is stale: run make generate", name)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"tool_id": "ToolID", "isField": "IsField", "Idempotency-Key": "IdempotencyKey", "ASSET_3D": "Asset3D", "start_utc": "StartUTC",
		"16:9": "16x9", "4K+": "4kPlus", "sha256": "SHA256", "generation.succeeded": "GenerationSucceeded",
	} {
		if got := exportedName(name); got != want {
			t.Errorf("%s is called %s, want %s", name, got, want)
		}
	}
	text := comment("\t", strings.Repeat("word ", 40)+"\n\n- one\n- two")
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if len(line) > 80 || !strings.HasPrefix(strings.TrimSpace(line), "//") {
			t.Errorf("line %q", line)
		}
	}
}

// TestGeneratorRefuses has documents that the generator has no rule for: it
// says so, instead of writing a client that lacks something.
func TestGeneratorRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"there is no schema":    "components: {schemas: {A: {type: object, properties: {b: {$ref: \"#/components/schemas/B\"}}}}}",
		"has no rule":           "components: {schemas: {A: {anyOf: [{type: string}]}}}",
		"which is not in the":   "paths: {}",
		"a mapping is required": "paths: []",
	} {
		doc, err := readDocument([]byte(text))
		if err == nil {
			if _, err = generateTypes(doc); err == nil {
				_, err = generateCalls(doc)
			}
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
