package toolsync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolsync"
	"atelier/internal/file/blob"
	"atelier/internal/testkit/watch"
)

const manifest = "name: One\navatar: dot.png\nprice: {type: FREE}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"

type shop struct {
	*toolsync.Syncer
	dir string
	log *watch.Log
}

func open(t *testing.T, db *sqldb.DB, blobs blob.Store, asked <-chan struct{}, every time.Duration) *shop {
	t.Helper()
	s := &shop{dir: t.TempDir(), log: &watch.Log{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.Syncer = &toolsync.Syncer{
		DB: db, Blobs: blobs, Catalog: catalog.New(db, log), Log: log, Interval: every, Reload: asked, Now: time.Now,
		Folders: []catalog.ManifestFolder{{Source: catalog.Directory, Files: os.DirFS(s.dir), Name: "tools"}},
	}
	return s
}

func (s *shop) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// name gives the only tool's name, "" when there is none.
func (s *shop) name() string {
	all := s.Catalog.CurrentSnapshot().AllTools()
	if len(all) == 0 {
		return ""
	}
	return all[0].Name
}

func store(t *testing.T) blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), "file://"+t.TempDir(), blob.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func dot(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWatch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		blobs := store(t)
		s := open(t, db, blobs, nil, 10*time.Millisecond)
		s.write(t, "one.yaml", manifest)
		s.write(t, "dot.png", dot(t))
		if err := s.LoadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		tool := s.Catalog.CurrentSnapshot().AllTools()[0]
		body, _, err := blobs.Open(t.Context(), catalog.AssetKey(tool.Avatar), 0, -1)
		if err != nil {
			t.Fatalf("the avatar is not stored: %v", err)
		}
		stored, _ := io.ReadAll(body)
		if body.Close(); string(stored) != dot(t) {
			t.Error("the stored avatar is not the file")
		}

		// An edit after loading and before watching, of the same size and, for
		// all the file system can tell, maybe at the same time.
		s.write(t, "one.yaml", strings.Replace(manifest, "One", "Two", 1))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		defer func() { stop(); <-done }()
		watch.Until(t, "the edit", func() bool { return s.name() == "Two" })
		if got := s.Catalog.CurrentSnapshot().AllTools()[0]; got.ID != tool.ID || got.Hash == tool.Hash {
			t.Error("the edit changed the id or left the hash")
		}
		s.write(t, "one.yaml", "name: [")
		watch.Until(t, "the report", func() bool { return strings.Contains(s.log.String(), "tools/one.yaml:1:1: not YAML") })
		if s.name() != "Two" {
			t.Error("a broken manifest took the tool away")
		}
		s.write(t, "one.yaml", strings.Replace(manifest, "One", "Three", 1))
		watch.Until(t, "the mend", func() bool { return s.name() == "Three" })
		if err := os.Remove(filepath.Join(s.dir, "one.yaml")); err != nil {
			t.Fatal(err)
		}
		watch.Until(t, "the removal", func() bool { return s.name() == "" })
	})
}

// meddling changes a file right after it was read for the first time.
type meddling struct {
	fs.FS
	name string
	once sync.Once
	edit func()
}

func (m *meddling) Open(name string) (fs.File, error) {
	f, err := m.FS.Open(name)
	if name == m.name && err == nil {
		return meddled{f, m}, nil
	}
	return f, err
}

type meddled struct {
	fs.File
	by *meddling
}

func (m meddled) Read(p []byte) (int, error) {
	n, err := m.File.Read(p)
	m.by.once.Do(m.by.edit)
	return n, err
}

// TestEditWhileReading edits a manifest between the moment it is read and the
// moment it is applied.
func TestEditWhileReading(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db, store(t), nil, 10*time.Millisecond)
		text := strings.Replace(manifest, "avatar: dot.png\n", "", 1)
		write := func(text string, age time.Duration) { // old, so that its content does not count
			s.write(t, "new", text)
			file, at := filepath.Join(s.dir, "new"), time.Now().Add(-age)
			if err := errors.Join(os.Chtimes(file, at, at), os.Rename(file, filepath.Join(s.dir, "one.yaml"))); err != nil {
				t.Error(err)
			}
		}
		write(text, 2*time.Hour)
		s.Folders[0].Files = &meddling{FS: os.DirFS(s.dir), name: "one.yaml", edit: func() {
			write(strings.Replace(text, "One", "Two", 1), time.Hour)
		}}
		if err := s.LoadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.name() != "One" {
			t.Fatalf("loaded %q, want the file as it was read", s.name())
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		defer func() { stop(); <-done }()
		watch.Until(t, "the edit", func() bool { return s.name() == "Two" })
	})
}

// TestTwoNodes has one node apply and another, without manifests, follow.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		blobs := store(t)
		asked := make(chan struct{})
		first, second := open(t, db, blobs, asked, time.Hour), open(t, db, blobs, nil, 10*time.Millisecond)
		second.Folders = nil
		for _, s := range []*shop{first, second} {
			if err := s.LoadCatalog(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { s.Run(ctx); close(done) }()
			defer func() { stop(); <-done }()
		}
		first.write(t, "one.yaml", manifest)
		first.write(t, "dot.png", dot(t))
		asked <- struct{}{} // SIGHUP: the next look would be in an hour
		watch.Until(t, "the first node", func() bool { return first.name() == "One" })
		watch.Until(t, "the second node", func() bool { return second.name() == "One" })
	})
}

// TestStoreAway keeps the catalog as it was while pictures cannot be stored.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		dir := t.TempDir()
		blobs, err := blob.Open(t.Context(), "file://"+dir, blob.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, db, blobs, nil, time.Hour)
		s.write(t, "one.yaml", manifest)
		s.write(t, "dot.png", dot(t))
		if err := blobs.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ApplyManifests(t.Context()); err == nil {
			t.Fatal("applied without a place for the picture")
		}
		if _, err := s.Catalog.RefreshSnapshot(t.Context()); err != nil || s.name() != "" {
			t.Errorf("catalog has %q, %v, want nothing", s.name(), err)
		}
	})
}

// TestLogOfChanges holds the line about a catalog to a length, however much has
// changed. A few changes are named.
func TestLogOfChanges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db, store(t), nil, time.Hour)
		s.write(t, "dot.png", dot(t))
		for i := range 40 {
			s.write(t, fmt.Sprintf("tool-%d.yaml", i), strings.Replace(manifest, "One", fmt.Sprintf("Tool %d", i), 1))
		}
		if err := s.LoadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if line := s.log.String(); !strings.Contains(line, "added=40 changed=0 removed=0") || len(line) > 200 {
			t.Errorf("log of 40 tools = %s", line)
		}

		few := open(t, db, store(t), nil, time.Hour)
		few.write(t, "dot.png", dot(t))
		few.write(t, "tool-0.yaml", strings.Replace(manifest, "One", "Tool 0", 1))
		few.write(t, "tool-1.yaml", strings.Replace(manifest, "One", "Tool 1 again", 1))
		for i := 2; i < 40; i++ {
			few.write(t, fmt.Sprintf("tool-%d.yaml", i), strings.Replace(manifest, "One", fmt.Sprintf("Tool %d", i), 1))
		}
		if err := few.LoadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if line := few.log.String(); !strings.Contains(line, `items="changed tool tool-1"`) {
			t.Errorf("log of one tool = %s", line)
		}
	})
}
