package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"atelier/internal/base/config"
	"atelier/internal/base/keyring"
	"atelier/internal/web/certificate"
)

// unknownVariables returns a warning for each environment variable ATELIER_…
// that is neither a setting nor the key of a model server.
func (p *program) unknownVariables() []string {
	var others []string
	if p.cfg.Backends != "" {
		backends, _ := config.ReadBackends(p.cfg.Backends, p.getenv) // an error is reported where the model servers are used
		for _, b := range backends {
			others = append(others, b.KeyEnv)
		}
	}
	return config.UnknownVariables(p.environ, p.kong.Model, others)
}

// checkInstallation returns the first problem that would prevent the service
// from starting. It runs before anything is written.
func (in *installation) checkInstallation() error {
	if in.cfg.Secret != "" {
		if _, err := keyring.New(in.cfg.Secret); err != nil {
			return err
		}
	}
	if in.cfg.HTTP.ACMERoots != "" {
		if _, err := certificate.LoadRoots(in.cfg.HTTP.ACMERoots); err != nil {
			return fmt.Errorf("http.acme_roots: %w", err)
		}
	}
	if _, err := manifestSources(in.cfg, ""); err != nil {
		return err
	}
	if _, err := in.readBackends(); err != nil {
		return err
	}
	return in.checkFolders()
}

// checkedPath is a file or folder that must be writable, and the setting that
// specifies it.
type checkedPath struct {
	setting, path string
	isFolder      bool
}

// checkFolders returns an error for the first configured file or folder that
// is not writable.
func (in *installation) checkFolders() error {
	var places []checkedPath
	if in.cfg.Secret == "" {
		places = append(places, checkedPath{"--data", filepath.Dir(in.cfg.SecretFile()), true})
	}
	if database, ok := strings.CutPrefix(in.cfg.DatabaseURL(), "sqlite://"); ok {
		setting := "--data"
		if in.cfg.Database != "" {
			setting = "--database"
		}
		path, err := url.PathUnescape(database)
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		places = append(places, checkedPath{setting, filepath.Dir(path), true})
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			if _, err := os.Lstat(path + suffix); err == nil {
				places = append(places, checkedPath{setting, path + suffix, false})
			}
		}
	}
	if blobs, ok := strings.CutPrefix(in.cfg.BlobsURL(), "file://"); ok {
		setting := "--data"
		if in.cfg.Blobs != "" {
			setting = "--blobs"
		}
		places = append(places, checkedPath{setting, blobs, true})
	}
	for _, one := range places {
		if err := one.checkWritable(); err != nil {
			return err
		}
	}
	return nil
}

// checkWritable returns an error unless the path is writable or can be
// created. The error says how to fix the problem.
func (p checkedPath) checkWritable() error {
	path := p.path
	for {
		info, err := os.Stat(path)
		parent := filepath.Dir(path)
		if errors.Is(err, fs.ErrNotExist) && parent != path {
			path = parent
			continue
		}
		if errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() && (path != p.path || p.isFolder) {
			return fmt.Errorf("%s: %s cannot be created: a part of this path is a file; choose another folder with %s", p.setting, p.path, p.setting)
		}
		if err == nil {
			err = checkAccess(path, info)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EROFS):
			return fmt.Errorf("%s: %s cannot be written: the file system is read-only; choose another path with %s", p.setting, path, p.setting)
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("%s: %s cannot be written by user %d: change its owner (chown -R %d %s), or choose another path with %s",
				p.setting, path, os.Geteuid(), os.Geteuid(), path, p.setting)
		}
		return fmt.Errorf("%s: %s cannot be written: %w", p.setting, path, err)
	}
}

// openListener listens on the address of a setting. The error says how to fix
// the problem.
func openListener(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use, perhaps by another Atelier process; stop that program or choose another address with %s", setting, address, setting)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %s needs privileges that this user does not have; choose a port above 1023, or grant the program the capability CAP_NET_BIND_SERVICE", setting, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: %s is not an address of this machine; 0.0.0.0 stands for all of its addresses", setting, address)
	}
	return nil, fmt.Errorf("%s: %w", setting, err)
}
