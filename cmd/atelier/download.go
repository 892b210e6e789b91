package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"atelier/client"
	"atelier/internal/cli/term"
)

type downloadCmd struct {
	jsonFlag
	serviceFlags
	IDs []string `arg:"" name:"id" help:"Ids of results, of uploads, or of runs (all their results)." complete:"results"`
	Out string   `help:"Folder for the files." default:"." placeholder:"DIR"`
	As  string   `help:"Name of the file without extension (default: from the run or upload)." placeholder:"NAME"`
}

// remoteFile is a file of the service with a name for the disk.
type remoteFile struct {
	id   string
	name string
	file client.RemoteFile
}

// Run downloads files, and verifies their size and hash. A download that breaks
// is resumed.
func (c downloadCmd) Run(p *program) error {
	p.patient = true
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	var files []remoteFile
	for _, id := range c.IDs {
		found, err := findFiles(p, service, id)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		files = append(files, found...)
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // the user may share the files
		return err
	}
	rows := []map[string]string{}
	for i, f := range files {
		name := f.name
		if c.As != "" {
			name = c.As + filepath.Ext(f.name)
			if len(files) > 1 {
				name = fmt.Sprintf("%s-%d%s", c.As, i+1, filepath.Ext(f.name))
			}
		}
		path := filepath.Join(c.Out, name)
		if err := c.downloadFile(p, service, i, f, path); err != nil {
			return fmt.Errorf("%s: %w", f.id, err)
		}
		rows = append(rows, map[string]string{"id": f.id, "path": path})
		if !c.JSON {
			fmt.Fprintln(p.stdout, path)
		}
	}
	if c.JSON {
		return p.printResult(true, map[string]any{"data": rows}, "")
	}
	return nil
}

func (c downloadCmd) downloadFile(p *program, service *client.Client, number int, f remoteFile, path string) error {
	if !term.IsTerminal(p.stderr) || c.JSON {
		return service.Download(p.ctx, f.file, path, nil)
	}
	bars := term.NewBars(p.stderr, p.palette(p.stderr))
	defer bars.Clear()
	return service.Download(p.ctx, f.file, path, func(done, total int64) {
		bars.Set(number, term.Bar{
			Name:     filepath.Base(path),
			Fraction: float64(done) / float64(max(total, 1)),
			Text:     showBytes(done) + " of " + showBytes(total),
		})
	})
}

var (
	runIDPattern    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	resultIDPattern = regexp.MustCompile(`^[A-Za-z0-9]{20}:[0-9a-f-]{36}$`)
	uploadIDPattern = regexp.MustCompile(`^[A-Za-z0-9]{20}$`)
)

// findFiles returns the files that an id stands for.
func findFiles(p *program, service *client.Client, id string) ([]remoteFile, error) {
	switch {
	case runIDPattern.MatchString(id):
		return outputsOfRun(p, service, id, "")
	case resultIDPattern.MatchString(id):
		item, err := service.Library.Get(p.ctx, id)
		if err != nil {
			return nil, err
		}
		return outputsOfRun(p, service, item.RequestID, id) // the run's record has the hash
	case uploadIDPattern.MatchString(id):
		upload, err := service.Uploads.Get(p.ctx, id)
		if err != nil {
			return nil, err
		}
		return []remoteFile{{id, safeFileName(upload.Name, upload.MimeType), upload.File()}}, nil
	}
	return nil, usageError{errors.New("this is not the id of a result, an upload or a run")}
}

// outputsOfRun returns the results of a run, or only the one with the given id.
func outputsOfRun(p *program, service *client.Client, id, only string) ([]remoteFile, error) {
	run, err := service.Runs.Get(p.ctx, id)
	if err != nil {
		return nil, err
	}
	var files []remoteFile
	for i, o := range run.Outputs {
		if only != "" && o.ID != only {
			continue
		}
		name := safeSlug(strings.ToLower(showOptional(run.ToolName)))
		name = fmt.Sprintf("%s-%s-%d%s", name, id[:8], i+1, fileExtension(o.MimeType))
		files = append(files, remoteFile{o.ID, name, o.File()})
	}
	if len(files) == 0 {
		return nil, statusError{fmt.Errorf("the run has no results: it is %s", describeStatus(run.RunRecord)), exitNotFound}
	}
	return files, nil
}

// safeFileName returns a file name for an upload. The service is not trusted, so
// that the name must not lead out of the folder.
func safeFileName(name, mimeType string) string {
	name = filepath.Base(filepath.Clean("/" + strings.ReplaceAll(cleanText(name), "\\", "/")))
	if name == "/" || name == "." || strings.HasPrefix(name, ".") {
		return "upload" + fileExtension(mimeType)
	}
	return name
}
