package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"atelier"
)

// long builds every program twice, which takes several minutes.
var long = flag.Bool("long", false, "build all packages for all systems twice and compare them")

// testSource describes this repository without asking git, because a test may
// run on a copy of the files alone.
func testSource() Source {
	return Source{
		Root:    filepath.Join("..", ".."),
		Commit:  "0123456789abcdef0123456789abcdef01234567",
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Version: "1.2.0-rc1",
		Level:   gzip.BestSpeed,

		Maintainer: defaultMaintainer,
	}
}

// testProgram returns the test's own program as a program to pack: it is small
// and its modules are known.
func testProgram(t *testing.T, target Target) Program {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := readProgram(target, path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPackagesAreReproducible packs one program twice, for a system of each kind,
// and compares the packages.
func TestPackagesAreReproducible(t *testing.T) {
	t.Parallel()
	s := testSource()
	targets := []Target{{"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}
	p := testProgram(t, targets[0])
	folders := []string{t.TempDir(), t.TempDir()}
	for _, folder := range folders {
		images := map[string]Program{}
		for _, target := range targets {
			p.Target = target
			if err := writePackages(s, p, folder); err != nil {
				t.Fatal(err)
			}
			if target.OS == "linux" {
				images[target.Arch] = p
			}
		}
		if err := writeDeployments(s, images, folder); err != nil {
			t.Fatal(err)
		}
		if err := writeSums(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := compareFolders(folders[0], folders[1]); err != nil {
		t.Error(err)
	}

	checkSums(t, folders[0], []string{
		"atelier_1.2.0-rc1_amd64.deb",
		"atelier_1.2.0-rc1_arm64.deb",
		"atelier_1.2.0-rc1_chart.tgz",
		"atelier_1.2.0-rc1_compose.yaml",
		"atelier_1.2.0-rc1_image.tar",
		"atelier_1.2.0-rc1_linux_amd64.cdx.json",
		"atelier_1.2.0-rc1_linux_amd64.tar.gz",
		"atelier_1.2.0-rc1_linux_arm64.cdx.json",
		"atelier_1.2.0-rc1_linux_arm64.tar.gz",
		"atelier_1.2.0-rc1_windows_amd64.cdx.json",
		"atelier_1.2.0-rc1_windows_amd64.zip",
	})
	checkArchives(t, folders[0])
	checkImage(t, filepath.Join(folders[0], "atelier_1.2.0-rc1_image.tar"))
	checkChartArchive(t, filepath.Join(folders[0], "atelier_1.2.0-rc1_chart.tgz"))

	if err := os.WriteFile(filepath.Join(folders[1], "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(folders[1]); err != nil {
		t.Fatal(err)
	}
	if err := compareFolders(folders[0], folders[1]); err == nil {
		t.Error("a build with one more file counts as equal")
	}
}

// checkSums checks that SHA256SUMS names exactly these files.
func checkSums(t *testing.T, folder string, want []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, sumsName))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		names = append(names, name)
		if got, err := fileDigest(filepath.Join(folder, name)); err != nil || got != sum {
			t.Errorf("digest of %s = %s, %v, want %s", name, got, err, sum)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("packages = %q, want %q", names, want)
	}
}

// checkArchives checks that the program and all licences are in the archives.
func checkArchives(t *testing.T, folder string) {
	t.Helper()
	base := "atelier_1.2.0-rc1_linux_amd64"
	packed, err := os.ReadFile(filepath.Join(folder, base+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	files := readTarGzip(t, packed)
	for name, text := range map[string]string{
		"atelier":              "\x7fELF",
		"LICENSE":              "Apache License",
		"NOTICE":               "Instrument Sans",
		"THIRD-PARTY-LICENSES": "modernc.org/sqlite v",
		"README.md":            "# Atelier",
		"CHANGELOG.md":         "#",
	} {
		if f := files[base+"/"+name]; !strings.Contains(string(f.content), text) {
			t.Errorf("%s in the archive lacks %q", name, text)
		}
	}
	if mode := files[base+"/atelier"].header.Mode; mode != 0o755 {
		t.Errorf("mode of the program = %o, want 755", mode)
	}

	z, err := zip.OpenReader(filepath.Join(folder, "atelier_1.2.0-rc1_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if name := z.File[0].Name; name != "atelier_1.2.0-rc1_windows_amd64/atelier.exe" {
		t.Errorf("first file of the zip archive = %q", name)
	}
}

// checkChartArchive checks that the archive has all files of the chart, and the
// version of the release.
func checkChartArchive(t *testing.T, name string) {
	t.Helper()
	packed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := readTarGzip(t, packed)
	for _, file := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "templates/_helpers.tpl", "templates/api.yaml"} {
		if len(files["atelier/"+file].content) == 0 {
			t.Errorf("the chart lacks %s", file)
		}
	}
	if text := string(files["atelier/Chart.yaml"].content); !strings.Contains(text, "\nversion: 1.2.0-rc1\nappVersion: \"1.2.0-rc1\"\n") {
		t.Errorf("the chart has another version: %s", text)
	}
}

type packedFile struct {
	header  *tar.Header
	content []byte
}

func readTarGzip(t *testing.T, packed []byte) map[string]packedFile {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	return readTar(t, plain)
}

func readTar(t *testing.T, r io.Reader) map[string]packedFile {
	t.Helper()
	files := map[string]packedFile{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = packedFile{h, content}
	}
}

// checkImage unpacks an image layout, validates all digests in it, and checks
// the configuration and the content of the images.
func checkImage(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	folder := t.TempDir()
	for name, file := range readTar(t, f) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if file.header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, file.content, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Errorf("the image layout is invalid: %v", err)
	}
	top, err := outer.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json has %v, %v, want one index", top, err)
	}
	if got, want := top.Manifests[0].Annotations["io.containerd.image.name"], "docker.io/library/atelier:1.2.0-rc1"; got != want {
		t.Errorf("the image is loaded as %q, want %q", got, want)
	}
	index, err := outer.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var architectures []string
	for _, m := range manifest.Manifests {
		architectures = append(architectures, m.Platform.Architecture)
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImageContent(t, image)
	}
	if !slices.Equal(architectures, []string{"amd64", "arm64"}) {
		t.Errorf("architectures = %q", architectures)
	}
}

func checkImageContent(t *testing.T, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !config.Created.Equal(testSource().Time) {
		t.Errorf("user %q, created %v", config.Config.User, config.Created)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v, want 1", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := readTar(t, r)
	if h := files["var/lib/atelier/"].header; h == nil || h.Uid != imageUser || h.Mode != 0o700 {
		t.Errorf("the data folder is %+v", h)
	}
	if h := files["tmp/"].header; h == nil || h.Mode != 0o1777 {
		t.Errorf("the temporary folder is %+v", h)
	}

	if !strings.Contains(string(files["usr/share/doc/atelier/THIRD-PARTY-LICENSES"].content), "modernc.org/sqlite v") {
		t.Error("the image lacks the licences")
	}
	certificates := 0
	for rest := files["etc/ssl/certs/ca-certificates.crt"].content; ; certificates++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Errorf("certificate %d: %v", certificates, err)
		}
	}
	if certificates < 80 {
		t.Errorf("the image trusts %d authorities, want at least 80", certificates)
	}
}

// TestBillOfMaterials checks that every module of a program is listed.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	p := testProgram(t, Target{"linux", "amd64"})
	text, err := billOfMaterials(testSource(), p)
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		t.Fatal(err)
	}
	if len(b.Components) != len(externalModules(p.Info))+1 || len(b.Components) < 3 {
		t.Errorf("%d components, but the program has %d modules", len(b.Components), len(externalModules(p.Info)))
	}
	found := false
	for _, c := range b.Components {
		found = found || strings.HasPrefix(c.PURL, "pkg:golang/github.com/google/go-containerregistry@v")
	}
	if !found {
		t.Error("go-containerregistry is not listed")
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.SerialNumber) {
		t.Errorf("serial number = %q", b.SerialNumber)
	}
}

// TestSignature signs a file with a new key and verifies it with the command of
// the documentation.
func TestSignature(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed (apt-get install openssh-client)")
	}
	folder := t.TempDir()
	key := filepath.Join(folder, "key")
	runCommand(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signers := filepath.Join(folder, "signers")
	sums := filepath.Join(folder, sumsName)
	for path, text := range map[string]string{signers: "releases@example.com " + string(public), sums: "digest  file\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := signFile(t.Context(), sums, key); err != nil {
		t.Fatal(err)
	}
	verify := []string{"-Y", "verify", "-f", signers, "-I", "releases@example.com", "-n", "file", "-s", sums + ".sig"}
	runCommand(t, "digest  file\n", "ssh-keygen", verify...)

	c := exec.CommandContext(t.Context(), "ssh-keygen", verify...)
	c.Stdin = strings.NewReader("another digest  file\n")
	if out, err := c.CombinedOutput(); err == nil {
		t.Errorf("a changed file was accepted: %s", out)
	}
}

// runCommand runs a command and returns its output.
func runCommand(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestTargets(t *testing.T) {
	t.Parallel()
	all, err := parseTargets(strings.Join(allTargets, ","))
	if err != nil || len(all) != 6 {
		t.Errorf("all targets = %v, %v", all, err)
	}
	if _, err := parseTargets("linux/amd64,plan9/386"); err == nil {
		t.Error("plan9/386 was accepted")
	}
}

// TestTwoBuildsAreEqual builds all packages for all systems twice. It is the
// long form of TestPackagesAreReproducible.
func TestTwoBuildsAreEqual(t *testing.T) {
	if !*long {
		t.Skip("builds every program twice: go test -timeout 2h -run TestTwoBuildsAreEqual ./build/release -args -long")
	}
	s, err := readSource(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	targets, err := parseTargets(strings.Join(allTargets, ","))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := buildAll(t.Context(), s, targets, out); err != nil {
		t.Fatal(err)
	}
	if err := compareSecondBuild(t.Context(), s, targets, out); err != nil {
		t.Error(err)
	}
	sums, err := os.ReadFile(filepath.Join(out, sumsName))
	t.Logf("%s%v", sums, err)
}

// TestLicencesAreFresh collects the licence texts again and compares them with
// the file that is part of the program.
func TestLicencesAreFresh(t *testing.T) {
	t.Parallel()
	targets, err := parseTargets(strings.Join(allTargets, ","))
	if err != nil {
		t.Fatal(err)
	}
	text, err := collectLicences(t.Context(), testSource().Root, targets)
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		t.Skipf("modules for other systems are not here and cannot be fetched: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if text != atelier.ThirdPartyLicenses() {
		t.Errorf("%s.gz is stale: run make generate", licencesName)
	}
}

// TestLicencesOfAllModules checks that a module without licence text is found.
func TestLicencesOfAllModules(t *testing.T) {
	t.Parallel()
	info := debug.BuildInfo{Deps: []*debug.Module{{Path: "atelier/client", Version: "v0.0.0"}}}
	if err := checkLicences(&info); err != nil {
		t.Error(err)
	}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.com/unknown", Version: "v1.0.0"})
	if err := checkLicences(&info); err == nil {
		t.Error("a module without licence text was accepted")
	}
	l := licenceTexts{works: map[string][]string{}, read: map[string]bool{}}
	folder := t.TempDir()
	if err := l.addFolder("example.com/unknown v1.0.0", folder, folder); err == nil {
		t.Error("a folder without licence file was accepted")
	}
}
