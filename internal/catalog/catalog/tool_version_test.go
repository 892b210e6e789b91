package catalog_test

import (
	"fmt"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
)

func TestVersions(t *testing.T) {
	dbtest.EachFixture(t, catalog.Checks, func(w dbtest.Fixture) {
		s := open(w.T, w.DB)
		version := func(hash, name string) *catalog.Tool {
			w.Helper()
			tool, err := s.ToolVersion(w.Context(), hash)
			w.OK(err)
			if tool.Name != name || tool.Hash != hash || tool.ID+tool.Slug != "" || !tool.Created.IsZero() || !tool.Updated.IsZero() || tool.AverageDuration != 0 {
				w.Errorf("version = %+v, want that of %s and nothing of the row", tool, name)
			}
			return tool
		}
		f := files("a.yaml", namedDefinition("A"), "twin.yaml", namedDefinition("A"), "b.yaml", namedDefinition("B"))
		s.apply(dir(f))
		first, other := s.tool("a").Hash, s.tool("b").Hash
		version(other, "B")
		f["a.yaml"].Data = []byte(namedDefinition("A2"))
		delete(f, "b.yaml")
		delete(f, "twin.yaml")
		s.apply(dir(f))
		second := s.tool("a").Hash
		s = open(w.T, w.DB) // nothing in memory
		version(first, "A")
		version(second, "A2")
		version(other, "B")
		if again := version(first, "A"); again != version(first, "A") {
			w.Error("a version is decoded again")
		}
		f["a.yaml"].Data = []byte(namedDefinition("A"))
		s.apply(dir(f))
		if s.tool("a").Hash != first {
			w.Error("an edit that was taken back has another hash")
		}
		for _, unknown := range []string{"", "v1:", first + "x", "v2" + first[2:]} {
			if tool, err := s.ToolVersion(w.Context(), unknown); !fault.Is(err, fault.NotFound) || tool != nil {
				w.Errorf("version %q = %v, %v, want none", unknown, tool, err)
			}
		}
		w.Exec(`INSERT INTO tool_version (hash, definition) VALUES ('v1:odd', '{"name":3}')`)
		if _, err := s.ToolVersion(w.Context(), "v1:odd"); err == nil || fault.Is(err, fault.NotFound) {
			w.Errorf("a version that cannot be read = %v, want an accident", err)
		}

		const lost = "the current definition of every tool is stored as a version"
		for _, damage := range []string{`DELETE FROM tool_version`, `UPDATE tool_version SET definition = '{}'`, `UPDATE tool SET definition = '{}'`} {
			if !w.Damage(catalog.Checks, damage)[lost] {
				w.Errorf("%s: not found", damage)
			}
		}
	})
}

// TestVersionsInMemory asks for the same versions from many sides: all get one
// tool, and when more were read than are kept the first is read anew.
func TestVersionsInMemory(t *testing.T) {
	dbtest.EachFixture(t, nil, func(w dbtest.Fixture) {
		hash := make([]string, catalog.MaxVersions+1)
		w.Do(func(tx *sqldb.Tx) error {
			for i := range hash {
				definition := fmt.Sprintf(`{"name":"N%d","price":{"type":"FREE"},"output":{"type":"IMG","mime_types":["image/png"]},"engine":{"name":"e"}}`, i)
				hash[i] = catalog.HashOf(definition)
				if _, err := tx.Exec(w.Context(), `INSERT INTO tool_version (hash, definition) VALUES ($1, $2)`, hash[i], definition); err != nil {
					return err
				}
			}
			return nil
		})
		s := open(w.T, w.DB)
		const readers, shared = 8, 20
		var got [readers][shared]*catalog.Tool
		dbtest.Together(readers, func(r int) {
			for i := range shared {
				var err error
				if got[r][i], err = s.ToolVersion(w.Context(), hash[i]); err != nil {
					w.Error(err)
				}
			}
		})
		for r := range got {
			if got[r] != got[0] {
				w.Errorf("reader %d has tools of its own", r)
			}
		}
		read := func(i int) *catalog.Tool {
			tool, err := s.ToolVersion(w.Context(), hash[i])
			w.OK(err)
			if tool.Name != fmt.Sprint("N", i) {
				w.Fatalf("version %d is %s", i, tool.Name)
			}
			return tool
		}
		for i := range catalog.MaxVersions {
			read(i)
		}
		if read(0) != got[0][0] {
			w.Error("a version was dropped before there were too many")
		}
		read(catalog.MaxVersions)
		if read(0) == got[0][0] {
			w.Error("a version is kept although there were too many")
		}
	})
}

func TestTaggedForEverybody(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		f := files("a.yaml", namedDefinition("A")+"tags: [m, hidden]\n", "b.yaml", namedDefinition("B")+"tags: [m]\nvisibility: {roles: [r]}\n",
			"c.yaml", namedDefinition("C"), "gone.yaml", namedDefinition("G")+"tags: [m]\n",
			"tags.yaml", "m: {type: MEDIA, label: M}\nnobody: {type: MEDIA, label: N}\nhidden: {type: MEDIA, label: H, internal: true}")
		s.apply(dir(f))
		delete(f, "gone.yaml")
		s.apply(dir(f))
		id := func(slug string) (id string) {
			if err := db.QueryRow(t.Context(), `SELECT id FROM tool_tag WHERE slug = $1`, slug).Scan(&id); err != nil {
				t.Fatal(err)
			}
			return id
		}
		var want []string
		for _, tool := range s.CurrentSnapshot().ViewFor(catalog.Audience{Role: "r"}).ToolsByTag(id("m")) {
			want = append(want, tool.ID)
		}
		if equal(t, "with m", s.CurrentSnapshot().TaggedToolIDs(id("m")), want); len(want) != 2 {
			t.Errorf("%d tools with m, want 2", len(want))
		}
		for _, none := range []string{id("nobody"), id("hidden"), "unknown", ""} {
			equal(t, "with "+none, s.CurrentSnapshot().TaggedToolIDs(none), nil)
		}
	})
}
