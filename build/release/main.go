// Command release builds the packages of Atelier into a folder:
//
//	atelier_VERSION_OS_ARCH.tar.gz   the program with its licences (zip for Windows)
//	atelier_VERSION_ARCH.deb         for Debian and Ubuntu, with a systemd unit
//	atelier_VERSION_image.tar        an OCI image layout for amd64 and arm64
//	atelier_VERSION_compose.yaml     the image as several nodes, for Docker Compose
//	atelier_VERSION_chart.tgz        the image as several nodes, for Helm
//	atelier_VERSION_OS_ARCH.cdx.json bill of materials of a program (CycloneDX)
//	SHA256SUMS, SHA256SUMS.sig       digests of all files, and their signature
//
// Two builds of one commit with one version of Go give the same bytes: paths and
// clocks of the machine do not get into the files, all times are that of the
// commit.
//
//	go run ./build/release                               everything, unsigned
//	go run ./build/release -key ~/.ssh/id_ed25519        signed with this key
//	go run ./build/release -targets linux/amd64          one program only
//	go run ./build/release -twice                        builds twice and compares
//	go run ./build/release -licences                     writes THIRD-PARTY-LICENSES.gz
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/mail"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("out", filepath.Join("bin", "release"), "folder for the packages; it must be empty or missing")
	version := flags.String("version", "", "version of the release, such as 1.2.0 (default: the tag of the commit)")
	targets := flags.String("targets", strings.Join(allTargets, ","), "systems to build for")
	maintainer := flags.String("maintainer", defaultMaintainer, "who answers for the Debian packages: name and mail address")
	key := flags.String("key", "", "SSH key that signs SHA256SUMS (default: no signature)")
	twice := flags.Bool("twice", false, "build everything a second time and compare")
	changed := flags.Bool("changed", false, "allow uncommitted changes")
	licences := flags.Bool("licences", false, "only write the licence texts into the repository (make generate)")
	if err := flags.Parse(args); err != nil {
		return err
	}

	source, err := readSource(ctx, *version)
	if err != nil {
		return err
	}
	source.Maintainer = *maintainer
	if _, err := mail.ParseAddress(source.Maintainer); err != nil {
		return fmt.Errorf("maintainer %q: %w", source.Maintainer, err)
	}
	if *licences {
		return writeLicences(ctx, source.Root)
	}
	if source.Changed && !*changed {
		return errors.New("the working tree has uncommitted changes; commit them, or use -changed for a trial")
	}
	chosen, err := parseTargets(*targets)
	if err != nil {
		return err
	}
	if err := buildAll(ctx, source, chosen, *out); err != nil {
		return err
	}
	if *twice {
		if err := compareSecondBuild(ctx, source, chosen, *out); err != nil {
			return err
		}
	}
	if *key != "" {
		if err := signFile(ctx, filepath.Join(*out, sumsName), *key); err != nil {
			return err
		}
	}
	return printFiles(*out)
}

// buildAll writes the packages for the targets, and SHA256SUMS, into a folder.
func buildAll(ctx context.Context, s Source, targets []Target, out string) error {
	if err := makeEmpty(out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "atelier-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	images := map[string]Program{} // by architecture
	for _, t := range targets {
		binary := filepath.Join(work, t.OS+"_"+t.Arch, t.programName())
		if err := buildBinary(ctx, s, t, binary); err != nil {
			return err
		}
		p, err := readProgram(t, binary)
		if err != nil {
			return err
		}
		if err := checkLicences(p.Info); err != nil {
			return err
		}
		if err := writePackages(s, p, out); err != nil {
			return err
		}
		if t.OS == "linux" {
			images[t.Arch] = p
		}
	}
	if err := writeDeployments(s, images, out); err != nil {
		return err
	}
	return writeSums(out)
}

// writeDeployments writes the image, and the compose file and the chart that
// use it, if there are programs for Linux.
func writeDeployments(s Source, programs map[string]Program, out string) error {
	if len(programs) == 0 {
		return nil
	}
	base := filepath.Join(out, s.baseName())
	if err := writeImage(s, programs, base+"_image.tar"); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := writeCompose(s, base+"_compose.yaml"); err != nil {
		return err
	}
	return writeChart(s, base+"_chart.tgz")
}

// writePackages writes the packages of one program: the archive, the bill of
// materials and, for Linux, the Debian package.
func writePackages(s Source, p Program, out string) error {
	base := filepath.Join(out, s.baseName()+"_"+p.Target.OS+"_"+p.Target.Arch)
	if err := writeArchive(s, p, base); err != nil {
		return fmt.Errorf("archive for %s: %w", p.Target, err)
	}
	bill, err := billOfMaterials(s, p)
	if err != nil {
		return fmt.Errorf("bill of materials for %s: %w", p.Target, err)
	}
	if err := os.WriteFile(base+".cdx.json", bill, 0o644); err != nil { //nolint:gosec // for everybody
		return err
	}
	if p.Target.OS != "linux" {
		return nil
	}
	if err := writeDeb(s, p, filepath.Join(out, s.baseName()+"_"+p.Target.Arch+".deb")); err != nil {
		return fmt.Errorf("package for Debian on %s: %w", p.Target.Arch, err)
	}
	return nil
}

// makeEmpty creates a folder. It fails if the folder has content, so that
// SHA256SUMS covers nothing but this build.
func makeEmpty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty; remove it first", folder)
	}
	return os.MkdirAll(folder, 0o755) //nolint:gosec // for everybody
}

// compareSecondBuild builds everything again and returns an error that names
// the first file that differs.
func compareSecondBuild(ctx context.Context, s Source, targets []Target, first string) error {
	second, err := os.MkdirTemp("", "atelier-second-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(second)
	if err := buildAll(ctx, s, targets, second); err != nil {
		return err
	}
	return compareFolders(first, second)
}

// printFiles prints the name and the size of every package.
func printFiles(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Printf("%12d  %s\n", info.Size(), filepath.Join(folder, e.Name()))
	}
	return nil
}
