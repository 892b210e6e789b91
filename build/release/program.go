package main

import (
	"debug/buildinfo"
	"runtime/debug"
)

// Program is a compiled program, and the modules that are part of it.
type Program struct {
	Target Target
	Path   string
	Info   *debug.BuildInfo
}

// readProgram reads the modules of a compiled program.
func readProgram(t Target, path string) (Program, error) {
	info, err := buildinfo.ReadFile(path)
	return Program{Target: t, Path: path, Info: info}, err
}
