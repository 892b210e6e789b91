package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"atelier/client"
	"atelier/internal/catalog/catalog"
)

// completeKind completes values by the struct tag "complete" of the flag or
// argument, or by its placeholder.
func (c *completer) completeKind(value *kong.Value, typed string) []candidate {
	kind := value.Tag.Get("complete")
	if value.Flag != nil {
		switch {
		case kind != "":
		case value.Name == "profile" || value.Name == "team":
			kind = value.Name + "s"
		case value.Flag.PlaceHolder == "DIR" || value.Flag.PlaceHolder == "FILE":
			kind = "files"
		}
	}
	switch kind {
	case "":
		return nil
	case "files":
		return filePaths(typed)
	case "profiles":
		return c.profileNames()
	}
	flags := serviceFlags{Profile: c.flags["profile"], Service: c.flags["service"], Token: c.flags["token"], Team: c.flags["team"]}
	service, err := flags.connect(c.program)
	if err != nil {
		return nil
	}
	switch kind {
	case "tools":
		return c.toolNames(service)
	case "fields":
		return c.fieldValues(service)
	case "teams":
		return c.teamIDs(service)
	case "companies":
		return c.companyIDs(service)
	case "runs":
		return c.runIDs(service)
	case "results":
		return c.resultIDs(service)
	case "flows":
		return c.flowIDs(service)
	case "boards":
		return c.boardIDs(service)
	case "tokens":
		return c.tokenIDs(service)
	case "devices":
		return c.deviceIDs(service)
	}
	return nil
}

func (c *completer) profileNames() []candidate {
	list, _ := c.profiles().Read() // without profiles there are no names
	var all []candidate
	for _, one := range list.Profiles {
		all = append(all, candidate{one.Name, one.URL})
	}
	return all
}

func (c *completer) toolNames(service *client.Client) []candidate {
	var all []candidate
	for t, err := range service.Tools.All(c.ctx, client.ToolsListParams{}) {
		if err != nil {
			break
		}
		all = append(all, candidate{safeSlug(t.Slug), t.Name})
	}
	return all
}

// fieldValues completes the fields of a tool, and the values of a field.
func (c *completer) fieldValues(service *client.Client) []candidate {
	if len(c.values) == 0 {
		return nil
	}
	tool, err := service.Tools.Find(c.ctx, c.values[0])
	if err != nil {
		return nil
	}
	key, typed, hasValue := strings.Cut(c.last, "=")
	var all []candidate
	for _, f := range inputFields(catalogTool(tool).Fields) {
		switch {
		case !hasValue:
			all = append(all, candidate{f.Key + "=", describeField(f)})
		case f.Key == key:
			for _, one := range valuesOf(f, typed) {
				all = append(all, candidate{key + "=" + one.word, one.help})
			}
		}
	}
	return all
}

// valuesOf returns values for a field.
func valuesOf(f catalog.Field, typed string) []candidate {
	var all []candidate
	before := "" // the finished items of a list
	if i := strings.LastIndexByte(typed, ','); i >= 0 {
		before = typed[:i+1]
	}
	switch f.Type {
	case "BOOLEAN":
		return []candidate{{"true", ""}, {"false", ""}}
	case "SINGLE_SELECT", "MODEL_SINGLE_SELECT":
		before = ""
		fallthrough
	case "MULTI_SELECT":
		for _, o := range f.Display.Options {
			all = append(all, candidate{before + describeDefault(o.Value), o.Text})
		}
	case "WIDTH_HEIGHT":
		for _, s := range f.Display.Sizes {
			all = append(all, candidate{describeDefault(map[string]any{"width": s.Width, "height": s.Height}), s.Text})
		}
	case "IMGS":
		for _, one := range filePaths(strings.TrimPrefix(typed[len(before):], "@")) {
			all = append(all, candidate{before + "@" + one.word, ""})
		}
	case "IMG", "VIDEO", "AUDIO", "ASSET_3D":
		for _, one := range filePaths(strings.TrimPrefix(typed, "@")) {
			all = append(all, candidate{"@" + one.word, ""})
		}
	default:
		if f.Default != nil {
			all = append(all, candidate{describeDefault(f.Default), "default"})
		}
	}
	return all
}

// filePaths returns the files and folders whose path begins as typed.
func filePaths(typed string) []candidate {
	dir, start := filepath.Split(typed)
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if dir == "" {
		entries, err = os.ReadDir(".")
	}
	if err != nil {
		return nil
	}
	var all []candidate
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(start, ".")
		if hidden || !strings.HasPrefix(e.Name(), start) {
			continue
		}
		word := dir + e.Name()
		if e.IsDir() {
			word += "/"
		}
		all = append(all, candidate{word, ""})
	}
	return all
}

func (c *completer) teamIDs(service *client.Client) []candidate {
	me, err := service.Me.Get(c.ctx)
	if err != nil {
		return nil
	}
	all := []candidate{{personalAccount, "your own account"}}
	for _, a := range me.Accounts {
		if a.Kind != "PERSONAL" {
			all = append(all, candidate{a.ID, a.Label})
		}
	}
	return all
}

func (c *completer) runIDs(service *client.Client) []candidate {
	page, err := service.Runs.List(c.ctx, client.RunsListParams{Limit: 30})
	if err != nil {
		return nil
	}
	var all []candidate
	for _, r := range page.Data {
		all = append(all, candidate{r.RequestID, showOptional(r.ToolName) + ", " + describeStatus(r)})
	}
	return all
}

func (c *completer) resultIDs(service *client.Client) []candidate {
	page, err := service.Library.List(c.ctx, client.LibraryListParams{Limit: 30})
	if err != nil {
		return nil
	}
	var all []candidate
	for _, i := range page.Data {
		all = append(all, candidate{i.ID, i.MimeType + ", " + showTime(i.Created)})
	}
	return all
}

func (c *completer) flowIDs(service *client.Client) []candidate {
	list, err := service.Flows.List(c.ctx)
	if err != nil {
		return nil
	}
	var all []candidate
	for _, f := range list.Data {
		all = append(all, candidate{f.ID, f.Name})
	}
	return all
}

func (c *completer) boardIDs(service *client.Client) []candidate {
	deleted := c.node.Name == "restore"
	page, err := service.Boards.List(c.ctx, client.BoardsListParams{Limit: 100, Deleted: &deleted})
	if err != nil {
		return nil
	}
	var all []candidate
	for _, b := range page.Data {
		all = append(all, candidate{b.ID, b.Name})
	}
	return all
}

func (c *completer) tokenIDs(service *client.Client) []candidate {
	page, err := service.AccessTokens.List(c.ctx, client.AccessTokensListParams{Limit: 100})
	if err != nil {
		return nil
	}
	var all []candidate
	for _, t := range page.Data {
		all = append(all, candidate{t.ID, t.Name})
	}
	return all
}

func (c *completer) deviceIDs(service *client.Client) []candidate {
	page, err := service.Devices.List(c.ctx, client.DevicesListParams{Limit: 100})
	if err != nil {
		return nil
	}
	var all []candidate
	for _, d := range page.Data {
		all = append(all, candidate{d.ID, d.Name})
	}
	return all
}

func (c *completer) companyIDs(service *client.Client) []candidate {
	list, err := service.Companies.List(c.ctx)
	if err != nil {
		return nil
	}
	var all []candidate
	for _, one := range list.Data {
		all = append(all, candidate{one.ID, one.Name})
	}
	return all
}
