package main

import (
	"os"
	"testing"
)

// What is compiled is what the description gives.
func TestAssemblyIsUpToDate(t *testing.T) {
	t.Parallel()
	for name, want := range files() {
		got, err := os.ReadFile("../../internal/engine/builtin/tiny/kernel/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is old: run go generate ./internal/engine/builtin/tiny/kernel", name)
		}
	}
}
