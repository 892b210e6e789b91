package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
)

// shop is a catalog under test.
type shop struct {
	*catalog.Catalog
	t  *testing.T
	db *sqldb.DB
}

func open(t *testing.T, db *sqldb.DB) *shop {
	return &shop{catalog.New(db, slog.New(slog.DiscardHandler)), t, db}
}

// apply applies some sources and gives what changed as "added tool x".
func (s *shop) apply(from ...catalog.ManifestFolder) []string {
	s.t.Helper()
	set, err := catalog.Read(from...)
	if err != nil {
		s.t.Fatal(err)
	}
	changes, err := catalog.Apply(s.t.Context(), s.db, set)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.RefreshSnapshot(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, c := range changes {
		all = append(all, c.Action+" "+c.Kind+" "+c.Slug)
	}
	return all
}

func dir(f fs.FS) catalog.ManifestFolder {
	return catalog.ManifestFolder{Source: catalog.Directory, Files: f, Name: "dir"}
}
func builtin(f fs.FS) catalog.ManifestFolder {
	return catalog.ManifestFolder{Source: catalog.Builtin, Files: f, Name: "builtin"}
}

func (s *shop) tool(slug string) *catalog.Tool {
	s.t.Helper()
	for _, t := range s.CurrentSnapshot().ViewFor(catalog.Audience{}).Tools {
		if t.Slug == slug {
			return t
		}
	}
	return nil
}

func (s *shop) slugs() []string {
	var all []string
	for _, t := range s.CurrentSnapshot().ViewFor(catalog.Audience{}).Tools {
		all = append(all, t.Slug)
	}
	return all
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func namedDefinition(name string) string { return strings.Replace(manifest, "Echo", name, 1) }

func TestApply(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		f := files("a.yaml", namedDefinition("A"), "b.yaml", namedDefinition("B"), "tags.yaml", "g: {type: MEDIA, label: G}", "kits.yaml", "k: {label: K, tools: [{tool: a}]}")
		equal(t, "first", s.apply(dir(f)), []string{"added tool_tag g", "added tool a", "added tool b", "added kit k"})
		equal(t, "again", s.apply(dir(f)), nil)
		a := *s.tool("a")
		if !ids.Valid(a.ID) || !strings.HasPrefix(a.Hash, "v1:") || len(a.Hash) != 46 || a.Created.IsZero() {
			t.Errorf("tool = %+v, want an id, a hash and a time", a)
		}

		f["a.yaml"].Data = []byte("# only a comment\nengine: {name: script}\n" + strings.Replace(namedDefinition("A"), "engine: {name: script}\n", "", 1))
		equal(t, "comment and order", s.apply(dir(f)), nil)

		f["a.yaml"].Data = []byte(namedDefinition("A2"))
		equal(t, "edit", s.apply(dir(f)), []string{"changed tool a"})
		edited := *s.tool("a")
		if edited.ID != a.ID || edited.Hash == a.Hash || !edited.Created.Equal(a.Created) || edited.Updated.Before(a.Updated) {
			t.Errorf("edited = %+v, want the id of %+v and another hash", edited, a)
		}

		f["a.yaml"].Data = []byte("name: [")
		equal(t, "broken", s.apply(dir(f)), nil)
		if got := s.tool("a"); got == nil || got.Name != "A2" {
			t.Errorf("after a broken edit the tool is %+v, want the last good one", got)
		}
		f["tags.yaml"].Data, f["kits.yaml"].Data = []byte("g: 3"), []byte("k: 3")
		f["b.yaml"].Data = []byte(namedDefinition("B") + "tags: [g]\n")
		equal(t, "broken lists", s.apply(dir(f)), []string{"changed tool b"})
		if v := s.CurrentSnapshot().ViewFor(catalog.Audience{}); len(v.PublicTags()) != 1 || len(v.VisibleKits()) != 1 {
			t.Errorf("%d tags and %d kits, want the last good one of each", len(v.PublicTags()), len(v.VisibleKits()))
		}

		delete(f, "a.yaml")
		delete(f, "tags.yaml")
		delete(f, "kits.yaml")
		f["b.yaml"].Data = []byte(namedDefinition("B"))
		equal(t, "removal", s.apply(dir(f)), []string{"removed tool_tag g", "changed tool b", "removed tool a", "removed kit k"})
		equal(t, "tools", s.slugs(), []string{"b"})
		if name, other := s.CurrentSnapshot().ToolName(a.ID), s.CurrentSnapshot().ToolName(ids.New()); name != "A2" || other != "" {
			t.Errorf("the removed tool's name is %q and nobody's %q, want A2 and none", name, other)
		}

		f["a.yaml"] = &fstest.MapFile{Data: []byte(namedDefinition("A"))}
		equal(t, "return", s.apply(dir(f)), []string{"added tool a"})
		if got := s.tool("a"); got.ID != a.ID || got.Hash != a.Hash {
			t.Errorf("a tool that came back is %+v, want id and hash of %+v", got, a)
		}
		if v, err := db.VerifyChecks(t.Context(), catalog.Checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
}

func TestSources(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		ours, theirs := builtin(files("a.yaml", namedDefinition("ours"), "b.yaml", namedDefinition("ours"))), dir(files("a.yaml", namedDefinition("theirs"), "c.yaml", namedDefinition("theirs")))
		s.apply(ours, theirs)
		equal(t, "tools", slices.Sorted(slices.Values(s.slugs())), []string{"a", "b", "c"})
		if got := s.tool("a").Name; got != "theirs" {
			t.Errorf("a is %s, want the directory's", got)
		}
		equal(t, "a node without a directory", s.apply(ours), nil)
		id := s.tool("a").ID
		equal(t, "directory lets go", s.apply(ours, dir(files("c.yaml", namedDefinition("theirs")))), []string{"changed tool a"})
		if got := s.tool("a"); got.Name != "ours" || got.ID != id {
			t.Errorf("a is %+v, want the built-in with the same id", got)
		}
		equal(t, "a broken override", s.apply(ours, dir(files("b.yaml", "name: [", "c.yaml", namedDefinition("theirs")))), nil)
		s.apply(ours, dir(files("b.yaml", namedDefinition("theirs"), "c.yaml", namedDefinition("theirs"))))
		equal(t, "an override that broke", s.apply(ours, dir(files("b.yaml", "name: [", "c.yaml", namedDefinition("theirs")))), nil)
		if got := s.tool("b").Name; got != "theirs" {
			t.Errorf("b is %s, want the directory's last good one", got)
		}
		s.apply(ours, dir(files("c.yaml", namedDefinition("theirs"))))
		tag := func(label string) string { return "g: {type: MEDIA, label: " + label + "}" }
		ours = builtin(files("a.yaml", namedDefinition("ours"), "b.yaml", namedDefinition("ours"), "tags.yaml", tag("Ours")))
		s.apply(ours, dir(files("c.yaml", namedDefinition("theirs"), "tags.yaml", tag("Theirs"))))
		equal(t, "a list that broke", s.apply(ours, dir(files("c.yaml", namedDefinition("theirs"), "tags.yaml", "g: 3"))), nil)
		if got := s.CurrentSnapshot().ViewFor(catalog.Audience{}).PublicTags()[0].Label; got != "Theirs" {
			t.Errorf("the tag is %s, want the directory's last good one", got)
		}
		s.apply(ours, dir(files("c.yaml", namedDefinition("theirs"))))
		equal(t, "the directory alone", s.apply(dir(files())), []string{"removed tool c"})
	})
}

func TestEveryEditChangesTheHash(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		base := namedDefinition("A") + "position: 1\nfields: [{key: a, type: NUM, label: L, min: 1}]\n"
		f := files("a.yaml", base, "tags.yaml", "g: {type: MEDIA, label: G}")
		f["p.png"] = &fstest.MapFile{Data: picture(t, 8)}
		s.apply(dir(f))
		seen := map[string]string{s.tool("a").Hash: "base"}
		for _, edit := range []string{
			"name: A|name: B", "FREE|COST, tokens: 1", "position: 1|position: 2", "key: a|key: b", "label: L|label: M", "min: 1|min: 0",
			"type: NUM|type: CFG", "name: script|name: other", "name: script|name: script, with: {x: 1}", "image/png|image/jpeg",
			"position: 1|position: 1\ndescription: d", "position: 1|position: 1\ntimeout: 5s", "position: 1|position: 1\ntags: [g]",
			"position: 1|position: 1\nvisibility: {roles: [r]}", "position: 1|position: 1\nnum_results: {max: 2}", "position: 1|position: 1\navatar: p.png",
			"label: L|label: L, help: h", "label: L|label: L, required: true", "label: L|label: L, default: 3",
		} {
			from, to, _ := strings.Cut(edit, "|")
			f["a.yaml"].Data = []byte(strings.Replace(base, from, to, 1))
			if got := s.apply(dir(f)); len(got) != 1 {
				t.Errorf("%s: changes %q, want one", edit, got)
			}
			var hash string
			for _, tool := range s.CurrentSnapshot().ViewFor(catalog.Audience{Role: "r"}).Tools {
				hash = tool.Hash
			}
			if before, taken := seen[hash]; taken {
				t.Errorf("%s has the hash of %s", edit, before)
			}
			seen[hash] = edit
		}
		f["a.yaml"].Data = []byte(strings.Replace(base, "position: 1", "position: 1\navatar: p.png", 1))
		s.apply(dir(f))
		before := s.tool("a").Hash
		f["p.png"].Data = picture(t, 9)
		if s.apply(dir(f)); s.tool("a").Hash == before {
			t.Error("another picture under the same name leaves the hash as it was")
		}
	})
}

func TestVisibility(t *testing.T) {
	t.Parallel()
	v := func(text string) string { return namedDefinition("T") + "visibility: " + text + "\n" }
	f := files("all.yaml", namedDefinition("T"), "explicit.yaml", v("everyone"), "company.yaml", v("{companies: [c1, c2]}"), "team.yaml", v("{teams: [t1]}"),
		"role.yaml", v("{roles: [artist]}"), "mixed.yaml", v("{teams: [t2], roles: [lead]}"),
		"kits.yaml", "k: {label: K, default: team, tags: [idle, second, first], tools: [{tool: team, tags: [late, first]}, {tool: role, tags: [second, first]}]}\n"+
			"open: {label: O, tags: [starter], tools: [{tool: all}]}")
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		s.apply(dir(f))
		for _, c := range []struct {
			audience catalog.Audience
			want     string
			kits     string
		}{
			{catalog.Audience{}, "all explicit", "open:all:"},
			{catalog.Audience{CompanyID: "c1"}, "all company explicit", "open:all:"},
			{catalog.Audience{CompanyID: "c3", TeamID: "t1"}, "all explicit team", "k:team:first,late open:all:"},
			{catalog.Audience{CompanyID: "c2", TeamID: "t2", Role: "artist"}, "all company explicit mixed role", "k:role:second,first open:all:"},
			{catalog.Audience{TeamID: "t1", Role: "artist"}, "all explicit role team", "k:team:second,first,late open:all:"},
			{catalog.Audience{Role: "lead"}, "all explicit mixed", "open:all:"},
			{catalog.Audience{CompanyID: "t1", TeamID: "c1", Role: "t1"}, "all explicit", "open:all:"},
		} {
			view := s.CurrentSnapshot().ViewFor(c.audience)
			var got, kits []string
			for _, tool := range view.Tools {
				got = append(got, tool.Slug)
				if _, ok := view.ToolByID(tool.ID); !ok {
					t.Errorf("%+v: %s is in the list and not found by id", c.audience, tool.Slug)
				}
			}
			slices.Sort(got)
			for _, k := range view.VisibleKits() {
				kits = append(kits, k.Slug+":"+k.Default.Slug+":"+strings.Join(k.Tags, ","))
			}
			equal(t, fmt.Sprintf("tools for %+v", c.audience), got, strings.Fields(c.want))
			equal(t, fmt.Sprintf("kits for %+v", c.audience), kits, strings.Fields(c.kits))
		}
		view := s.CurrentSnapshot().ViewFor
		if view(catalog.Audience{TeamID: "x"}) != view(catalog.Audience{TeamID: "y"}) || view(catalog.Audience{}) == view(catalog.Audience{TeamID: "t1"}) {
			t.Error("audiences that see the same tools do not share a view, or others do")
		}
		for i := range 2500 { // more than are kept
			if n := len(view(catalog.Audience{TeamID: fmt.Sprint("team", i)}).Tools); n != 2 {
				t.Fatalf("audience %d sees %d tools, want 2", i, n)
			}
		}
		hidden := s.CurrentSnapshot().ViewFor(catalog.Audience{TeamID: "t1"}).Tools
		for _, tool := range hidden {
			_, seen := s.CurrentSnapshot().ViewFor(catalog.Audience{}).ToolByID(tool.ID)
			if open := tool.Slug == "all" || tool.Slug == "explicit"; seen != open {
				t.Errorf("%s found by id from outside: %v, want %v", tool.Slug, seen, open)
			}
		}
	})
}

func TestTags(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		f := files("a.yaml", namedDefinition("A")+"tags: [z, hidden, m]\n", "b.yaml", namedDefinition("B")+"tags: [m]\n",
			"tags.yaml", "z: {type: MEDIA, label: Zoo}\nm: {type: MEDIA, label: Ape}\nfam: {type: FAMILY, label: Fam}\nhidden: {type: MEDIA, label: Hidden, internal: true}")
		s.apply(dir(f))
		v := s.CurrentSnapshot().ViewFor(catalog.Audience{})
		label := func(tags []catalog.Tag) (all []string) {
			for _, g := range tags {
				all = append(all, g.Label)
			}
			return all
		}
		equal(t, "vocabulary", label(v.PublicTags()), []string{"Fam", "Ape", "Zoo"})
		equal(t, "tags of a", label(v.TagsOf(s.tool("a"))), []string{"Zoo", "Ape"})
		ids := map[string]string{}
		for _, g := range v.PublicTags() {
			ids[g.Slug] = g.ID
		}
		if n := len(v.ToolsByTag(ids["m"])); n != 2 {
			t.Errorf("%d tools with m, want 2", n)
		}
		if n := len(v.ToolsByTag(ids["fam"])) + len(v.ToolsByTag("unknown")); n != 0 {
			t.Errorf("%d tools with a tag nobody has, want none", n)
		}
		delete(f, "tags.yaml")
		f["tags.yaml"] = &fstest.MapFile{Data: []byte("m: {type: MEDIA, label: Ape}")}
		f["a.yaml"].Data, f["b.yaml"].Data = []byte(namedDefinition("A")+"tags: [m]\n"), []byte(namedDefinition("B")+"tags: [m]\n")
		s.apply(dir(f))
		v = s.CurrentSnapshot().ViewFor(catalog.Audience{})
		equal(t, "after deletion", label(v.PublicTags()), []string{"Ape"})
		if v.PublicTags()[0].ID != ids["m"] {
			t.Error("a tag's id changed")
		}
	})
}

func TestOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		at := func(p string) string { return "position: " + p + "\n" }
		s.apply(dir(files("late.yaml", namedDefinition("A")+at("9"), "first.yaml", namedDefinition("Z")+at("1"), "second.yaml", namedDefinition("a")+at("2"),
			"third.yaml", namedDefinition("b")+at("2"), "rest.yaml", namedDefinition("A"))))
		equal(t, "order", s.slugs(), []string{"first", "second", "third", "late", "rest"})
		s.apply(dir(files("x.yaml", namedDefinition("Same"), "y.yaml", namedDefinition("Same"))))
		tools := s.CurrentSnapshot().ViewFor(catalog.Audience{}).Tools
		if tools[0].ID > tools[1].ID {
			t.Error("tools of one name are not in order of id")
		}
	})
}

func TestStoredDefinitionReadsBackWhole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := open(t, db)
		s.apply(dir(os.DirFS(filepath.Join("testdata", "everything"))))
		v := s.CurrentSnapshot().ViewFor(catalog.Audience{Role: "artist"})
		if len(v.Tools) != 1 {
			t.Fatalf("%d tools, want 1", len(v.Tools))
		}
		tool := v.Tools[0]
		if tool.Name != "Everything 🎨" || tool.Timeout != 90*time.Second || *tool.NumResults != (catalog.NumResults{Min: 1, Max: 4, Default: 2}) ||
			tool.Engine.With != `{"deep":{"no":null,"yes":true},"steps":[1,2.5,"three"]}` || len(tool.Avatar) != 64 {
			t.Errorf("tool = %+v", tool)
		}
		leaves := map[string]catalog.Field{}
		var walk func([]catalog.Field)
		walk = func(fields []catalog.Field) {
			for _, f := range fields {
				if f.Key != "" {
					leaves[f.Key] = f
				}
				walk(f.Children)
			}
		}
		walk(tool.Fields)
		if len(leaves) != 22 {
			t.Errorf("%d fields, want 22", len(leaves))
		}
		for key, want := range map[string]any{"seed": int64(4294967295), "cfg": 7.5, "tile": true, "style": "dot", "extras": []any{"a", "b"},
			"size": map[string]any{"width": int64(512), "height": int64(768)}, "prompt": nil} {
			if got := leaves[key].Default; fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
				t.Errorf("default of %s = %T %v, want %T %v", key, got, got, want, want)
			}
		}
		if leaves["style"].Display.Options[0].Image != tool.Avatar {
			t.Error("the option's picture is not the one beside the manifest")
		}
	})
}

func TestAverage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		s := open(t, db)
		s.apply(dir(files("a.yaml", namedDefinition("A"), "b.yaml", namedDefinition("B"))))
		before := *s.tool("a")
		if before.AverageDuration != 0 {
			t.Errorf("average of a new tool = %v, want none", before.AverageDuration)
		}
		at := time.Now()
		run := func(d time.Duration, times int) {
			err := db.Write(ctx, func(tx *sqldb.Tx) error {
				for range times {
					at = at.Add(time.Microsecond)
					tx.Now = at
					if err := catalog.RecordDuration(ctx, tx, before.ID, d); err != nil {
						return err
					}
				}
				return nil
			})
			if err := errors.Join(err, catalog.UpdateAverages(ctx, db)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.RefreshSnapshot(ctx); err != nil {
				t.Fatal(err)
			}
		}
		run(2*time.Second, 1)
		run(4*time.Second, 1)
		got := s.tool("a")
		if got.AverageDuration != 3*time.Second || got.RecentDuration != 2*time.Second || got.Hash != before.Hash || !got.Updated.Equal(before.Updated) {
			t.Errorf("tool = %+v, want an average of 3 s, a middle of 2 s and nothing else changed", got)
		}
		if s.tool("b").AverageDuration != 0 {
			t.Error("another tool's runs count")
		}
		run(10*time.Second, 150)
		if got := s.tool("a").AverageDuration; got != 10*time.Second {
			t.Errorf("average = %v, want the newest hundred runs' 10s", got)
		}
		run(2*time.Second, 12)
		run(time.Minute, 3) // the model was loaded again
		if got := s.tool("a"); got.RecentDuration != 2*time.Second || got.AverageDuration < 10*time.Second {
			t.Errorf("recent = %v and average = %v, want the 2s of most of the newest runs in spite of the average", got.RecentDuration, got.AverageDuration)
		}
		version := s.CurrentSnapshot().Version
		if err := catalog.UpdateAverages(ctx, db); err != nil {
			t.Fatal(err)
		}
		if changed, err := s.RefreshSnapshot(ctx); changed || err != nil || s.CurrentSnapshot().Version != version {
			t.Errorf("refresh without news = %v, %v", changed, err)
		}
	})
}

// TestFirstStartOfManyNodes has nodes apply the same set to an empty catalog at
// once: one adds everything, the others find it there.
func TestFirstStartOfManyNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		f := fstest.MapFS{}
		for i := range 30 {
			f[fmt.Sprintf("t%d.yaml", i)] = &fstest.MapFile{Data: []byte(namedDefinition("x"))}
		}
		var added atomic.Int64
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				set, err := catalog.Read(dir(f))
				if err != nil {
					t.Error(err)
					return
				}
				changes, err := catalog.Apply(t.Context(), db, set)
				if err != nil {
					t.Error(err)
				}
				added.Add(int64(len(changes)))
			})
		}
		group.Wait()
		if added.Load() != 30 {
			t.Errorf("%d additions, want 30", added.Load())
		}
	})
}

// TestManyNodes lets several nodes apply different sets while others read: each
// snapshot is one of the sets, never a mixture, and ids never change.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		const tools = 10
		set := func(name string) catalog.ManifestFolder {
			f := fstest.MapFS{}
			for i := range tools {
				f[fmt.Sprintf("t%d.yaml", i)] = &fstest.MapFile{Data: []byte(namedDefinition(name))}
			}
			return dir(f)
		}
		open(t, db).apply(set("n0"))
		var writers, readers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				for i := range 10 {
					s, err := catalog.Read(set(fmt.Sprintf("n%d", (w+i)%4)))
					if err == nil {
						_, err = catalog.Apply(t.Context(), db, s)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 2 {
			readers.Go(func() {
				c := catalog.New(db, slog.New(slog.DiscardHandler))
				ids := map[string]string{}
				for ctx.Err() == nil {
					if _, err := c.RefreshSnapshot(t.Context()); err != nil {
						t.Error(err)
						return
					}
					names := map[string]bool{}
					for _, tool := range c.CurrentSnapshot().ViewFor(catalog.Audience{}).Tools {
						names[tool.Name] = true
						if was, ok := ids[tool.Slug]; ok && was != tool.ID {
							t.Errorf("id of %s changed", tool.Slug)
						}
						ids[tool.Slug] = tool.ID
					}
					if len(names) != 1 || len(ids) != tools {
						t.Errorf("a snapshot mixes %v of %d tools", slices.Collect(maps.Keys(names)), len(ids))
					}
				}
			})
		}
		writers.Wait()
		stop()
		readers.Wait()
	})
}
