package a1111

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// maxInlineBytes is the maximum size of an input picture, in bytes. It is
// limited because pictures are embedded in the JSON request.
const maxInlineBytes = 48 << 20

// maxBatch is the maximum number of pictures per batch. More would need more
// memory than most graphics cards have. Further pictures are made in further
// batches.
const maxBatch = 4

// maxSide is the maximum width and height, in pixels, of pictures whose size is
// derived from an input picture. Larger ones would need more memory than most
// graphics cards have.
const maxSide = 2048

// parameterNames map, for each API endpoint, field keys to request parameters
// whose names differ from the keys. A manifest's rename setting has precedence.
var parameterNames = map[string]map[string]string{
	"txt2img": {"cfg": "cfg_scale", "sampler": "sampler_name", "denoise": "denoising_strength", "size.width": "width", "size.height": "height"},
	"img2img": {"cfg": "cfg_scale", "sampler": "sampler_name", "denoise": "denoising_strength", "size.width": "width", "size.height": "height", "picture": "init_images", "pictures": "init_images"},
	"upscale": {"factor": "upscaling_resize", "upscaler": "upscaler_1", "picture": "image", "size.width": "upscaling_resize_w", "size.height": "upscaling_resize_h"},
}

// listParameters are the request parameters that take a list of pictures.
var listParameters = map[string]bool{"init_images": true}

// parameterFor returns the request parameter that a field is sent to. It
// returns false if the field is not sent.
func (t *task) parameterFor(key string) (string, bool) {
	to, ok := t.Rename[key]
	if !ok {
		if to, ok = parameterNames[t.Call][key]; !ok {
			to = key
		}
	}
	return to, to != "-" && to != ""
}

// requestBody returns the JSON body of the request that makes the pictures:
// the job's fields, seed and files, and the manifest's constants.
func (t *task) requestBody(ctx context.Context) (map[string]any, error) {
	all := map[string]any{}
	for key, v := range t.Values {
		if key == "seed" && t.Rename[key] == "" {
			continue // the seed comes from Job.Seed
		}
		if sides, ok := v.(map[string]any); ok {
			for side, n := range sides {
				if to, ok := t.parameterFor(key + "." + side); ok {
					all[to] = n
				}
			}
			continue
		}
		// Fields that a person left empty are not sent, so that the server
		// uses its defaults.
		if to, ok := t.parameterFor(key); ok && v != "" {
			all[to] = v
		}
	}
	if err := t.addFiles(ctx, all); err != nil {
		return nil, err
	}
	settings := map[string]any{}
	if t.Call != "upscale" {
		all["seed"] = t.Seed
		all["send_images"] = true
		all["save_images"] = false
		if t.Checkpoint != "" {
			settings["sd_model_checkpoint"] = t.Checkpoint
			// The server does not restore the previous model afterwards,
			// because loading a model takes longer than drawing many pictures
			// and every tool names its own model.
			all["override_settings_restore_afterwards"] = false
		}
	}
	maps.Copy(all, t.Fixed)
	t.setSize(all)
	if fixed, ok := t.Fixed["override_settings"].(map[string]any); ok {
		maps.Copy(settings, fixed)
	}
	if len(settings) > 0 {
		all["override_settings"] = settings
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all, nil
}

// setSize adds the parameters without which the server would choose another
// size than people expect: img2img would make pictures of 512 by 512, and
// upscale would ignore the size. A manifest's fixed parameters have precedence.
func (t *task) setSize(all map[string]any) {
	has := func(name string) bool {
		_, there := all[name]
		return there
	}
	switch {
	case t.Call == "img2img" && !has("width") && !has("height"):
		if f, ok := t.firstPicture(); ok && f.Width > 0 && f.Height > 0 {
			all["width"], all["height"] = fitSize(f.Width, f.Height)
		}
	case t.Call == "upscale" && (has("upscaling_resize_w") || has("upscaling_resize_h")) && !has("resize_mode"):
		all["resize_mode"] = 1 // 1 resizes to a given size, 0 by a factor
	}
}

// firstPicture returns the first input picture of an img2img job.
func (t *task) firstPicture() (engine.File, bool) {
	for _, key := range slices.Sorted(maps.Keys(t.Files)) {
		if to, _ := t.parameterFor(key); to == "init_images" && len(t.Files[key]) > 0 {
			return t.Files[key][0], true
		}
	}
	return engine.File{}, false
}

// fitSize returns a size that models accept for a picture: the sides are scaled
// down to at most maxSide and rounded down to multiples of 8.
func fitSize(width, height int) (int, int) {
	longest := max(width, height, maxSide)
	fit := func(side int) int { return max(side*maxSide/longest/8*8, 64) }
	return fit(width), fit(height)
}

// setBatches sets the batch size and the number of batches for the requested
// number of results. A few more pictures are made if results is not a multiple
// of the batch size. A manifest may set its own batch size.
func (t *task) setBatches(all map[string]any, results int) {
	rounds := (results + maxBatch - 1) / maxBatch
	batch := (results + rounds - 1) / rounds
	if n, ok := wholeNumber(t.Fixed["batch_size"]); ok && n > 0 {
		batch = n
		rounds = (results + n - 1) / n
	}
	all["batch_size"] = batch
	all["n_iter"] = rounds
}

func wholeNumber(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(n.String())
	return i, err == nil
}

// addFiles adds the job's input pictures to the request body as data: URIs.
func (t *task) addFiles(ctx context.Context, all map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(t.Files)) {
		to, ok := t.parameterFor(key)
		if !ok {
			continue
		}
		var list []any
		for _, f := range t.Files[key] {
			uri, err := backend.DataURI(ctx, f, maxInlineBytes)
			if err != nil {
				return err
			}
			list = append(list, uri)
		}
		switch {
		case listParameters[to]:
			before, _ := all[to].([]any)
			all[to] = append(before, list...)
		case len(list) > 0:
			all[to] = list[0]
		}
	}
	return nil
}
