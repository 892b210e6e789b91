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

	"golang.org/x/sys/unix"

	"atelier/internal/base/config"
	"atelier/internal/base/keyring"
	"atelier/internal/web/certificate"
)

// unknownVariables warns of ATELIER_… variables that nothing reads. Backends may
// have their keys in such variables.
func (p *program) unknownVariables() []string {
	var others []string
	if p.cfg.Backends != "" {
		backends, _ := config.ReadBackends(p.cfg.Backends, p.getenv) // whoever needs them reports what is wrong
		for _, b := range backends {
			others = append(others, b.KeyEnv)
		}
	}
	return config.UnknownVariables(p.environ, p.kong.Model, others)
}

// checkInstallation finds what would keep the service from starting, before
// anything is written.
func (p *program) checkInstallation() error {
	if p.cfg.Secret != "" {
		if _, err := keyring.New(p.cfg.Secret); err != nil {
			return err
		}
	}
	if p.cfg.HTTP.ACMERoots != "" {
		if _, err := certificate.LoadRoots(p.cfg.HTTP.ACMERoots); err != nil {
			return fmt.Errorf("http.acme_roots: %w", err)
		}
	}
	if _, err := manifests(p.cfg, ""); err != nil {
		return err
	}
	if _, err := p.backends(); err != nil {
		return err
	}
	return p.checkFolders()
}

// place is a file or folder that has to be writable, and the setting that names
// it.
type place struct {
	setting, path string
	isFolder      bool
}

// checkFolders finds files and folders that cannot be written.
func (p *program) checkFolders() error {
	var places []place
	if p.cfg.Secret == "" {
		places = append(places, place{"--data", filepath.Dir(p.cfg.SecretFile()), true})
	}
	if database, ok := strings.CutPrefix(p.cfg.DatabaseURL(), "sqlite://"); ok {
		setting := "--data"
		if p.cfg.Database != "" {
			setting = "--database"
		}
		path, err := url.PathUnescape(database)
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		places = append(places, place{setting, filepath.Dir(path), true})
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			if _, err := os.Lstat(path + suffix); err == nil {
				places = append(places, place{setting, path + suffix, false})
			}
		}
	}
	if blobs, ok := strings.CutPrefix(p.cfg.BlobsURL(), "file://"); ok {
		setting := "--data"
		if p.cfg.Blobs != "" {
			setting = "--blobs"
		}
		places = append(places, place{setting, blobs, true})
	}
	for _, one := range places {
		if err := one.check(); err != nil {
			return err
		}
	}
	return nil
}

// check finds out whether a place can be written, or made, and says what to do
// where it cannot.
func (p place) check() error {
	path := p.path
	for {
		info, err := os.Stat(path)
		parent := filepath.Dir(path)
		if errors.Is(err, fs.ErrNotExist) && parent != path {
			path = parent
			continue
		}
		if errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() && (path != p.path || p.isFolder) {
			return fmt.Errorf("%s: %s cannot be made: there is a file in the way; name another folder with %s", p.setting, p.path, p.setting)
		}
		if err == nil {
			mode := uint32(unix.W_OK)
			if info.IsDir() {
				mode |= unix.X_OK
			}
			err = unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EROFS):
			return fmt.Errorf("%s: %s cannot be written: the file system is read-only; name a place elsewhere with %s", p.setting, path, p.setting)
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("%s: %s cannot be written by user %d: give it to that user (chown -R %d %s), or name another place with %s",
				p.setting, path, os.Geteuid(), os.Geteuid(), path, p.setting)
		}
		return fmt.Errorf("%s: %s cannot be written: %w", p.setting, path, err)
	}
}

// listen opens an address that a setting names, or says what to do where it
// cannot be had.
func listen(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use, perhaps by an Atelier that is running already; stop that program or choose another address with %s", setting, address, setting)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %s needs rights that this user does not have; choose a port above 1023, or give the program CAP_NET_BIND_SERVICE", setting, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: %s is not an address of this machine; 0.0.0.0 stands for all of its addresses", setting, address)
	}
	return nil, fmt.Errorf("%s: %w", setting, err)
}
