package a1111

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"atelier/internal/engine/backend"
)

// maxInline bounds a picture, which has to travel inside of JSON.
const maxInline = 48 << 20

// maxBatch is how many pictures are made at the same time: more want more
// memory than most cards have. What goes beyond is made one batch after another.
const maxBatch = 4

// names are the parameters for fields that are called otherwise here. A
// manifest's rename comes before them.
var names = map[string]map[string]string{
	"txt2img": {"cfg": "cfg_scale", "sampler": "sampler_name", "denoise": "denoising_strength", "size.width": "width", "size.height": "height"},
	"img2img": {"cfg": "cfg_scale", "sampler": "sampler_name", "denoise": "denoising_strength", "size.width": "width", "size.height": "height", "picture": "init_images", "pictures": "init_images"},
	"upscale": {"factor": "upscaling_resize", "upscaler": "upscaler_1", "picture": "image", "size.width": "upscaling_resize_w", "size.height": "upscaling_resize_h"},
}

// lists are the parameters that take several pictures.
var lists = map[string]bool{"init_images": true}

// name gives the parameter for a field, false for none.
func (t *task) name(key string) (string, bool) {
	to, ok := t.Rename[key]
	if !ok {
		if to, ok = names[t.Call][key]; !ok {
			to = key
		}
	}
	return to, to != "-" && to != ""
}

// body gives what is sent.
func (t *task) body(ctx context.Context) (map[string]any, error) {
	all := map[string]any{}
	for key, v := range t.Values {
		if key == "seed" && t.Rename[key] == "" {
			continue // Job.Seed tells it
		}
		if sides, ok := v.(map[string]any); ok {
			for side, n := range sides {
				if to, ok := t.name(key + "." + side); ok {
					all[to] = n
				}
			}
			continue
		}
		// What a person left empty is the server's to choose.
		if to, ok := t.name(key); ok && v != "" {
			all[to] = v
		}
	}
	if err := t.files(ctx, all); err != nil {
		return nil, err
	}
	settings := map[string]any{}
	if t.Call != "upscale" {
		all["seed"] = t.Seed
		all["send_images"] = true
		all["save_images"] = false
		if t.Checkpoint != "" {
			settings["sd_model_checkpoint"] = t.Checkpoint
			// To go back to the model that was loaded before takes longer than
			// many pictures, and every tool names its own.
			all["override_settings_restore_afterwards"] = false
		}
	}
	maps.Copy(all, t.Fixed)
	if fixed, ok := t.Fixed["override_settings"].(map[string]any); ok {
		maps.Copy(settings, fixed)
	}
	if len(settings) > 0 {
		all["override_settings"] = settings
	}
	if t.Call != "upscale" {
		t.batches(all)
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all, nil
}

// batches asks for as many pictures as are wanted, or a few more where they
// make no even batches. A manifest may have its own size of a batch.
func (t *task) batches(all map[string]any) {
	rounds := (t.NumResults + maxBatch - 1) / maxBatch
	batch := (t.NumResults + rounds - 1) / rounds
	if n, ok := whole(t.Fixed["batch_size"]); ok && n > 0 {
		batch = n
		rounds = (t.NumResults + n - 1) / n
	}
	all["batch_size"] = batch
	all["n_iter"] = rounds
}

func whole(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(n.String())
	return i, err == nil
}

// files puts the media inputs in, as data: URIs.
func (t *task) files(ctx context.Context, all map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(t.Files)) {
		to, ok := t.name(key)
		if !ok {
			continue
		}
		var list []any
		for _, f := range t.Files[key] {
			uri, err := backend.DataURI(ctx, f, maxInline)
			if err != nil {
				return err
			}
			list = append(list, uri)
		}
		switch {
		case lists[to]:
			before, _ := all[to].([]any)
			all[to] = append(before, list...)
		case len(list) > 0:
			all[to] = list[0]
		}
	}
	return nil
}
