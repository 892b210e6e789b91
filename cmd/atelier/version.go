package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"atelier"
)

// release is the version number of a release. The linker sets it; it is "" in
// other builds.
var release string

// buildInfo describes the source code that this program was built from.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // "" if built outside of a Git checkout
	Date     string `json:"date"`     // date of the commit
	Modified bool   `json:"modified"` // built with uncommitted changes
	Go       string `json:"go"`
}

// readBuild returns the version and the version-control information that the
// Go tool embeds in the program.
func readBuild() buildInfo {
	b := buildInfo{Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}

	b.Version = "devel"
	if len(b.Commit) >= 12 {
		b.Version += "-" + b.Commit[:12]
	}
	b.Version = cmp.Or(release, b.Version)
	return b
}

// buildVersion returns the version number of a release. For other builds it
// returns a version with the commit that the program was built from.
func buildVersion() string { return readBuild().Version }

type versionCmd struct{ jsonFlag }

func (c versionCmd) Run(p *program) error {
	b := readBuild()
	return p.printResult(c.JSON, b, "atelier "+b.Version+"\n"+b.describeBuild())
}

// describeBuild formats the build information for people.
func (b buildInfo) describeBuild() string {
	commit := cmp.Or(b.Commit, "unknown")
	if b.Modified {
		commit += ", with changes"
	}
	return "commit " + commit + "\ndate   " + cmp.Or(b.Date, "unknown") + "\ngo     " + b.Go
}

type noticeCmd struct{ jsonFlag }

func (c noticeCmd) Run(p *program) error {
	texts := struct {
		Notice     string `json:"notice"`
		License    string `json:"license"`
		ThirdParty string `json:"third_party"`
	}{atelier.Notice, atelier.License, atelier.ThirdPartyLicenses()}
	return p.printResult(c.JSON, texts, texts.Notice+"\n"+texts.License+"\n"+strings.TrimSuffix(texts.ThirdParty, "\n"))
}
