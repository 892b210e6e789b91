package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/comfyui/workflowimport"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/manifestdraft"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/replicate"
)

// importTime is the time limit for a model server to describe its models.
const importTime = 2 * time.Minute

type importCmd struct {
	jsonFlag
	Backend  string `arg:"" help:"Name of the server in the file that --backends names."`
	Workflow string `help:"ComfyUI: a workflow of the editor or in API format, or a picture, video or sound that ComfyUI made." type:"existingfile" placeholder:"FILE"`
	Last     bool   `help:"ComfyUI: import the workflow of the server's last successful run."`
	Model    string `help:"OpenAI, Replicate, fal: the model; A1111: the checkpoint (default: the loaded one). Without it, the models of an OpenAI-compatible server are listed." placeholder:"NAME"`
	Call     string `help:"OpenAI: ${openaiCalls}. A1111: ${a1111Calls}." placeholder:"CALL"`
	Output   string `help:"Cog, Replicate, fal: what the model makes: IMG, VID, AUDIO, ASSET_3D or TEXT (default: guessed from its description)." placeholder:"TYPE"`
	As       string `help:"Name of the manifest (default: from the model's name)." placeholder:"SLUG"`
	Into     string `help:"Folder for the manifest (default: --tools)." placeholder:"DIR"`
	Force    bool   `help:"Replace existing files."`
	Try      bool   `help:"Run the tool once on its server, with the defaults, and show the results."`
}

func (c importCmd) Run(p *program) error {
	backends, err := p.readBackends()
	if err != nil {
		return err
	}
	b, ok := backends[c.Backend]
	if !ok {
		return usageError{fmt.Errorf("there is no backend %s; the backends in the --backends file are %s", c.Backend,
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(backends)), ", "), "none"))}
	}
	e, shut, err := p.openBackend(b)
	if err != nil {
		return err
	}
	defer shut()
	ctx, cancel := context.WithTimeout(p.ctx, importTime)
	defer cancel()
	if server, ok := e.(*openai.Engine); ok && c.Model == "" {
		return c.listModels(ctx, p, server)
	}
	into := cmp.Or(c.Into, p.cfg.Tools)
	if into == "" {
		return usageError{errors.New("the manifest's folder is required: set --into or --tools")}
	}
	slug := c.As
	switch {
	case slug != "":
	case c.Last:
		slug = manifestdraft.Slug(c.Backend + " last run")
	case c.Workflow != "":
		slug = manifestdraft.Slug(strings.TrimSuffix(filepath.Base(c.Workflow), filepath.Ext(c.Workflow)))
	default:
		slug = manifestdraft.Slug(cmp.Or(c.Model, c.Backend))
	}
	if slug != manifestdraft.Slug(slug) { // the slug becomes a file name
		return usageError{errors.New("--as: a name consists of lower-case letters, digits and dashes")}
	}
	tool, report, err := c.draftManifest(ctx, e, slug)
	if err != nil {
		return err
	}
	written, err := c.writeManifest(tool, slug, into)
	if err != nil {
		return err
	}
	notes := append([]string{}, tool.Notes...)
	result := map[string]any{"slug": slug, "files": written, "fields": len(tool.Fields), "notes": notes}
	text := fmt.Sprintf("%s: %d fields; wrote %s\n", slug, len(tool.Fields), strings.Join(written, ", "))
	for _, note := range notes {
		text += note + "\n"
	}
	if report != nil {
		result["report"] = newImportReport(*report)
		text += describeImport(*report)
	}
	var failure error
	if c.Try {
		t := p.tryTool(e, tool, slug)
		result["try"] = t
		text += t.describe()
		failure = t.err
	}
	text += fmt.Sprintf("Look at its name, price and limits, then: atelier tools lint %s", into)
	return errors.Join(p.printResult(c.JSON, result, text), failure)
}

// listModels prints the models that a model server offers.
func (c importCmd) listModels(ctx context.Context, p *program, server *openai.Engine) error {
	all, err := server.ListModels(ctx)
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]any{"models": all}, "Choose one with --model:\n"+strings.Join(all, "\n"))
}

// draftManifest requests the description of a model from its server and
// creates a draft manifest from it. The report is nil if the server has no
// workflows.
func (c importCmd) draftManifest(ctx context.Context, e engine.Engine, slug string) (manifestdraft.Tool, *workflowimport.Report, error) {
	if server, ok := e.(*comfyui.Engine); ok {
		return c.importWorkflow(ctx, server, slug)
	}
	tool, err := c.importModel(ctx, e, slug)
	return tool, nil, err
}

// importWorkflow drafts a manifest for a ComfyUI workflow.
func (c importCmd) importWorkflow(ctx context.Context, e *comfyui.Engine, slug string) (manifestdraft.Tool, *workflowimport.Report, error) {
	from := workflowimport.Request{Name: manifestdraft.Label(slug), File: slug + ".json", Engine: c.Backend}
	switch {
	case c.Last && c.Workflow != "":
		return manifestdraft.Tool{}, nil, usageError{errors.New("--workflow and --last cannot be used together")}
	case c.Workflow != "":
		data, err := readWorkflowFile(c.Workflow)
		if err != nil {
			return manifestdraft.Tool{}, nil, err
		}
		from.Data = data
	case !c.Last:
		return manifestdraft.Tool{}, nil, usageError{errors.New("--workflow or --last is required for this server")}
	}
	tool, report, err := e.ImportTool(ctx, from)
	return tool, &report, err
}

// maxWorkflowFile is the maximum size of a file with a workflow, in bytes.
const maxWorkflowFile = 1 << 30

func readWorkflowFile(name string) ([]byte, error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if about.Size() > maxWorkflowFile {
		return nil, fmt.Errorf("%s is larger than %d MB", name, maxWorkflowFile>>20)
	}
	data, err := os.ReadFile(name)
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// importModel drafts a manifest for a model that its server describes.
func (c importCmd) importModel(ctx context.Context, e engine.Engine, slug string) (manifestdraft.Tool, error) {
	need := func(flag, value string) error {
		if value == "" {
			return usageError{fmt.Errorf("--%s is required for this server", flag)}
		}
		return nil
	}
	switch e.(type) {
	case *a1111.Engine, *openai.Engine:
		if c.Output != "" {
			return manifestdraft.Tool{}, usageError{errors.New("--output is allowed only for Cog, Replicate and fal")}
		}
	}
	switch e := e.(type) {
	case *cog.Engine:
		return e.ImportTool(ctx, manifestdraft.Label(slug), c.Backend, c.Output)
	case *a1111.Engine:
		return e.ImportTool(ctx, c.Model, c.Call, c.Backend)
	case *openai.Engine:
		return e.ImportTool(ctx, c.Model, c.Call, c.Backend)
	case *replicate.Engine:
		if err := need("model", c.Model); err != nil {
			return manifestdraft.Tool{}, err
		}
		return e.ImportTool(ctx, c.Model, c.Backend, c.Output)
	case *fal.Engine:
		if err := need("model", c.Model); err != nil {
			return manifestdraft.Tool{}, err
		}
		return e.ImportTool(ctx, c.Model, c.Backend, c.Output)
	}
	return manifestdraft.Tool{}, usageError{errors.New("this kind of server does not describe its models; write the manifest by hand as shown in docs/engines.md")}
}

// writeManifest validates the manifest, then writes it and its files to the
// folder.
func (c importCmd) writeManifest(tool manifestdraft.Tool, slug, into string) ([]string, error) {
	text, err := tool.YAML("Made by atelier tools import. Yours to edit: importing again replaces it only with --force.")
	if err != nil {
		return nil, err
	}
	files := maps.Clone(tool.Files)
	if files == nil {
		files = map[string][]byte{}
	}
	files[slug+".yaml"] = text
	if err := lintFiles(files); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(into, 0o755); err != nil { //nolint:gosec // manifests hold no secrets
		return nil, err
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(into, name)); err == nil && !c.Force {
			return nil, fmt.Errorf("%s already exists; use --force to replace it or --as to choose another name", filepath.Join(into, name))
		}
	}
	var written []string
	for _, name := range names {
		to := filepath.Join(into, name)
		if err := os.WriteFile(to, files[name], 0o644); err != nil { //nolint:gosec // other programs may serve the files
			return written, err
		}
		written = append(written, to)
	}
	return written, nil
}

// lintFiles validates a manifest and its files before they are written.
func lintFiles(files map[string][]byte) error {
	dir, err := os.MkdirTemp("", "atelier-import-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: os.DirFS(dir)})
	if err != nil {
		return err
	}
	var problems []error
	for _, one := range set.Problems {
		problems = append(problems, errors.New(one.String()))
	}
	if len(problems) > 0 {
		return fmt.Errorf("the server's description cannot be expressed as a manifest:\n%w", errors.Join(problems...))
	}
	return nil
}
