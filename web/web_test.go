package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"atelier/web"
)

// The budgets of the built files in bytes, compressed with gzip at its best.
const (
	firstViewBudget = 150_000
	boardBudget     = 75_000
	partBudget      = 40_000
	styleBudget     = 15_000
	fontBudget      = 50_000
)

// TestSizes holds the built files to their budgets: the first view, each part
// that is loaded when it is used, and fonts.
func TestSizes(t *testing.T) {
	t.Parallel()
	index := readBuilt(t, "index.html")
	first := firstView(t, string(index))

	scripts, styles, fonts := 0, 0, 0
	for _, name := range listBuilt(t) {
		size := compressedSize(t, readBuilt(t, name))
		initial := slices.Contains(first, name)
		switch path.Ext(name) {
		case ".js":
			budget := partBudget
			if strings.Contains(name, "/Board-") || strings.Contains(name, "/Canvas-") {
				budget = boardBudget
			}
			if initial {
				scripts += size
			} else if size > budget {
				t.Errorf("%s has %d bytes compressed, want at most %d", name, size, budget)
			}
		case ".css":
			if initial {
				styles += size
			}
		case ".woff2":
			fonts += len(readBuilt(t, name))
		}
	}
	t.Logf("first view: %d bytes of scripts and %d of styles, compressed; fonts: %d", scripts, styles, fonts)
	if scripts > firstViewBudget {
		t.Errorf("the scripts of the first view have %d bytes, want at most %d", scripts, firstViewBudget)
	}
	if styles > styleBudget {
		t.Errorf("the styles of the first view have %d bytes, want at most %d", styles, styleBudget)
	}
	if fonts > fontBudget {
		t.Errorf("the fonts have %d bytes, want at most %d", fonts, fontBudget)
	}
}

// firstView returns the files that index.html loads, and those that its scripts
// import at once.
func firstView(t *testing.T, index string) []string {
	t.Helper()
	var files []string
	for _, match := range regexp.MustCompile(`(?:src|href)="/(assets/[^"]+)"`).FindAllStringSubmatch(index, -1) {
		files = append(files, match[1])
	}
	static := regexp.MustCompile(`(?:from|import)"\./([^"]+\.js)"`)
	for i := 0; i < len(files); i++ {
		if path.Ext(files[i]) != ".js" {
			continue
		}
		for _, match := range static.FindAllSubmatch(readBuilt(t, files[i]), -1) {
			if name := "assets/" + string(match[1]); !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	if len(files) < 3 {
		t.Fatalf("index.html loads %q only", files)
	}
	return files
}

func listBuilt(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(web.Dist(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func readBuilt(t *testing.T, name string) []byte {
	t.Helper()
	content, err := fs.ReadFile(web.Dist(), name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func compressedSize(t *testing.T, content []byte) int {
	t.Helper()
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return compressed.Len()
}

// layers are the folders of src, the lowest first. A file imports only files of
// its own folder and of those before it.
var layers = []string{"api", "ui", "text", "routes", "data", "form", "pages", "app"}

// pages are the folders that hold a page each. They do not import each other.
var pages = []string{"create", "library", "boards", "flows", "reports", "you", "people", "operator"}

// TestImports walks the imports of the studio's source.
func TestImports(t *testing.T) {
	t.Parallel()
	imported := regexp.MustCompile(`(?m)(?:from|import\() ?'(\.{1,2}/[^']+)'|^import '(\.{1,2}/[^']+)'`)
	err := fs.WalkDir(os.DirFS("src"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(path.Ext(name), ".ts") || path.Dir(name) == "." {
			return err
		}
		content, err := os.ReadFile("src/" + name)
		if err != nil {
			return err
		}
		for _, match := range imported.FindAllSubmatch(content, -1) {
			target := path.Join(path.Dir(name), string(match[1])+string(match[2]))
			checkImport(t, name, target)
		}
		if strings.HasPrefix(name, "api/") && bytes.Contains(content, []byte("from 'react")) {
			t.Errorf("%s uses React", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImport(t *testing.T, name, target string) {
	t.Helper()
	from, _, _ := strings.Cut(name, "/")
	to, _, _ := strings.Cut(strings.TrimSuffix(target, path.Ext(target)), "/")
	if from == to {
		return
	}
	if slices.Contains(pages, from) && slices.Contains(pages, to) {
		t.Errorf("%s imports %s of another page", name, target)
		return
	}
	if from == "ui" {
		t.Errorf("%s imports %s, but ui stands alone", name, target)
		return
	}
	if rank(from) < 0 || rank(to) < 0 || rank(to) > rank(from) {
		t.Errorf("%s imports %s of a higher layer", name, target)
	}
}

// rank returns the place of a folder in layers.
func rank(folder string) int {
	if slices.Contains(pages, folder) {
		folder = "pages"
	}
	return slices.Index(layers, folder)
}

// TestStyles compares the classes that a component names with those of its style
// sheet: a name that is not there would show nothing.
func TestStyles(t *testing.T) {
	t.Parallel()
	sheet := regexp.MustCompile(`(?m)^import (\w+) from '(\.{1,2}/[^']+\.module\.css)';$`)
	err := fs.WalkDir(os.DirFS("src"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".tsx" {
			return err
		}
		content, err := os.ReadFile("src/" + name)
		if err != nil {
			return err
		}
		for _, match := range sheet.FindAllStringSubmatch(string(content), -1) {
			styles, err := os.ReadFile(path.Join("src", path.Dir(name), match[2]))
			if err != nil {
				return err
			}
			for _, class := range regexp.MustCompile(`\b`+match[1]+`\.(\w+)`).FindAllStringSubmatch(string(content), -1) {
				if !regexp.MustCompile(`\.` + class[1] + `\b`).Match(styles) {
					t.Errorf("%s names the class %s, which %s does not have", name, class[1], match[2])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLock checks that the lock has an entry for every platform of a native
// package; without it the studio could be built on one platform only.
func TestLock(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"package-lock.json", "gen/package-lock.json"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var lock struct {
			Packages map[string]struct {
				OptionalDependencies map[string]string
				Resolved             string
				HasInstallScript     bool
			}
		}
		if err := json.Unmarshal(content, &lock); err != nil {
			t.Fatal(err)
		}
		for of, entry := range lock.Packages {
			if entry.Resolved != "" {
				t.Errorf("%s: %s names the registry that it came from", name, of)
			}
			for dependency := range entry.OptionalDependencies {
				_, own := lock.Packages[of+"/node_modules/"+dependency]
				_, shared := lock.Packages["node_modules/"+dependency]
				if !own && !shared {
					t.Errorf("%s: %s needs %s, which has no entry", name, of, dependency)
				}
			}
		}
	}
}
