// Command clients writes the generated parts of the client libraries from
// api/openapi.yaml. With --check it writes nothing, and fails if a file differs
// from what it would write.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	openapi "atelier/api"
	"atelier/build/apispec"
)

// languages has the function that makes the files of each library.
var languages = []func(document) ([]file, error){
	pythonFiles,
	javascriptFiles,
}

// file is a generated file; its path is relative to the root of the repository.
type file struct {
	path string
	text []byte
}

func main() {
	check := flag.Bool("check", false, "fail if a generated file is stale, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	doc, err := apispec.Parse(openapi.Document)
	if err != nil {
		return err
	}
	var stale []error
	for _, generate := range languages {
		files, err := generate(document{doc})
		if err != nil {
			return err
		}
		for _, f := range files {
			if !check {
				err = writeFile(f)
			} else if old, _ := os.ReadFile(f.path); !bytes.Equal(old, f.text) {
				err = fmt.Errorf("%s is stale: run go run ./build/clients", f.path)
			}
			stale = append(stale, err)
		}
	}
	return errors.Join(stale...)
}

func writeFile(f file) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil { //nolint:gosec // source code
		return err
	}
	return os.WriteFile(f.path, f.text, 0o644) //nolint:gosec // source code
}
