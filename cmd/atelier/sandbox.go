package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"

	"atelier/internal/engine/subprocess"
)

// setSandbox denies the programs that engines run access to the service's own
// files.
func (in *installation) setSandbox() error {
	c := in.cfg
	mode := subprocess.SandboxMode(c.Engines.Sandbox)
	if mode == subprocess.SandboxRequire && subprocess.SandboxName() == "" {
		return errors.New("engines.sandbox: a sandbox is required, but this system has no Landlock (Linux 5.13 or later)")
	}
	hidden := []string{c.Data, c.Config, c.Backends, c.SecretFile()}
	for _, address := range []string{c.DatabaseURL(), c.BlobsURL()} {
		for _, scheme := range []string{"sqlite://", "file://"} {
			path, ours := strings.CutPrefix(address, scheme)
			path, _, _ = strings.Cut(path, "?")
			if ours {
				hidden = append(hidden, path, path+"-wal", path+"-shm", path+"-journal")
			}
		}
	}
	backends, err := in.readBackends()
	if err != nil {
		return err
	}
	for _, b := range backends {
		hidden = append(hidden, b.SecretFiles...)
	}
	var all []string
	for _, path := range hidden {
		if path == "" {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil {
			all = append(all, abs)
		}
	}
	subprocess.SetSandbox(subprocess.Sandbox{Mode: mode, Hidden: all})
	return nil
}

// logSandbox logs the sandbox in which the programs of engines run, or why
// there is none.
func (in *installation) logSandbox(log *slog.Logger) {
	name := subprocess.SandboxName()
	if name == "" || in.cfg.Engines.Sandbox == string(subprocess.SandboxOff) {
		log.Info("engine sandbox unavailable", "sandbox", in.describeSandbox().Detail)
		return
	}
	log.Info("engine sandbox enabled", "sandbox", name)
}

// describeSandbox returns the state of the sandbox in which the programs of
// engines run.
func (in *installation) describeSandbox() engineCheck {
	f := engineCheck{Name: "sandbox", Kind: "system", State: "ok"}
	switch name := subprocess.SandboxName(); {
	case in.cfg.Engines.Sandbox == string(subprocess.SandboxOff):
		f.Detail = "off (engines.sandbox): engine programs can read every file that the service can read"
	case name == "":
		f.Detail = "none on this system: engine programs can read every file that the service can read; Landlock needs Linux 5.13"
	default:
		f.Detail = name + ": engine programs can access only their own folder and the system's programs and libraries"
	}
	return f
}
