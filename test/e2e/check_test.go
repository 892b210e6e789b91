package e2e

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckWritesNothing checks an installation beside its server, after that was
// killed, and after it has ended.
func TestCheckWritesNothing(t *testing.T) {
	needOneProcess(t, "it looks at the files of SQLite")
	t.Parallel()
	s := newSite(t)
	n := s.serve()
	s.token("anna@example.com")
	s.check() // beside the server

	n.kill()
	if names := describeFolder(t, s.data); !strings.Contains(names, "atelier.db-wal") {
		t.Errorf("a server that was killed left no log:\n%s", names)
	}
	s.checkUnchanged("after a kill")

	s.serve().stop()
	if names := describeFolder(t, s.data); strings.Contains(names, "atelier.db-wal") {
		t.Errorf("a server that ended left its log:\n%s", names)
	}
	s.checkUnchanged("after an end")
}

// checkUnchanged checks the site with all of its files, and finds these as they
// were.
func (s *site) checkUnchanged(when string) {
	s.t.Helper()
	before := describeFolder(s.t, s.data)
	if v := s.do("check", "--files"); fmt.Sprint(v["violations"]) != "[]" {
		s.t.Errorf("%s: violations: %v", when, v)
	}
	if v := s.do("admin", "audit", "verify"); v["entries"] == 0.0 || fmt.Sprint(v["problems"]) != "[]" {
		s.t.Errorf("%s: audit log: %v", when, v)
	}
	if after := describeFolder(s.t, s.data); after != before {
		s.t.Errorf("%s: files were changed; before:\n%safter:\n%s", when, before, after)
	}
}

// describeFolder lists the files of a folder with their times and hashes.
func describeFolder(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&list, "%s %v %d %x\n", path, info.Mode(), info.ModTime().UnixNano(), sha256.Sum256(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}
