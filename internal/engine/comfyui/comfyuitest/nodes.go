package comfyuitest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	_ "image/jpeg" // registers the decoder for loaded JPEG files
	"image/png"
	"maps"
	"slices"
)

// latent is the data that samplers work on. Its name is a digest of everything
// that determines a result.
type latent struct {
	width, height, batch int
	name                 string
}

// pictures are the pictures of one batch. Each name is a digest of everything
// that determines the picture.
type pictures struct {
	width, height int
	names         []string
}

// run executes a node of the given class with the given inputs.
func (r *running) run(id, class string, in dict) (made, error) {
	number := func(name string) int {
		n, _ := json.Number(printed(in[name])).Float64()
		return int(n)
	}
	prefix, _ := in["filename_prefix"].(string)
	switch class {
	case "CheckpointLoaderSimple":
		name := printed(in["ckpt_name"])
		return made{values: []any{name, name, name}}, nil
	case "CLIPTextEncode", "CLIPTextEncodeSDXL", "FluxGuidance", "ConditioningZeroOut":
		return made{values: []any{named(class, in)}}, nil
	case "PrimitiveStringMultiline":
		return made{values: []any{in["value"]}}, nil
	case "EmptyLatentImage":
		return made{values: []any{latent{number("width"), number("height"), number("batch_size"), "empty"}}}, nil
	case "EmptyLatentAudio":
		return made{values: []any{latent{1, 1, number("batch_size"), named(class, in)}}}, nil
	case "VAEEncode":
		p := in["pixels"].(pictures)
		return made{values: []any{latent{p.width, p.height, len(p.names), named(class, in)}}}, nil
	case "KSampler", "KSamplerAdvanced":
		if err := r.sample(id, number("steps")); err != nil {
			return made{}, err
		}
		l := in["latent_image"].(latent)
		l.name = named(class, in)
		return made{values: []any{l}}, nil
	case "VAEDecode":
		l := in["samples"].(latent)
		p := pictures{width: l.width, height: l.height}
		for i := range l.batch {
			p.names = append(p.names, digest(l.name, fmt.Sprint(i)))
		}
		return made{values: []any{p}}, nil
	case "VAEDecodeAudio", "VAEDecodeHunyuan3D", "VoxelToMesh", "CreateVideo":
		return made{values: []any{named(class, in)}}, nil
	case "LoadImage":
		return r.loadImage(printed(in["image"]))
	case "LoadAudio", "VHS_LoadVideo":
		name := digest(printed(r.signature(id)))
		return made{values: []any{pictures{16, 16, []string{name}}, 1, name, ""}[:len(r.s.info[class].Output)]}, nil
	}
	ui, err := r.saveAs(class, prefix, in)
	return made{values: []any{nil}, ui: ui}, err
}

// named returns a digest of a node's class and inputs, which serves as the
// name of its result.
func named(class string, in dict) string {
	parts := []string{class}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		parts = append(parts, name, fmt.Sprintf("%v", in[name]))
	}
	return digest(parts...)
}

func (r *running) loadImage(name string) (made, error) {
	b, ok := r.s.input(name)
	if !ok {
		return made{}, fmt.Errorf("[Errno 2] No such file or directory: '/opt/ComfyUI/input/%s'", name)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return made{}, errors.New("cannot identify image file")
	}
	p := pictures{c.Width, c.Height, []string{digest(string(b))}}
	return made{values: []any{p, "mask"}}, nil
}

// saveAs executes a node that saves files, and returns the files' names as the
// output for the user interface.
func (r *running) saveAs(class, prefix string, in dict) (dict, error) {
	switch class {
	case "SaveImage", "PreviewImage":
		kind := "output"
		if class == "PreviewImage" {
			kind = "temp"
			prefix = "ComfyUI_temp"
		}
		p := in["images"].(pictures)
		var files []dict
		for _, name := range p.names {
			b, err := paint(p.width, p.height, name)
			if err != nil {
				return nil, err
			}
			files = append(files, r.s.save(kind, prefix, ".png", b))
		}
		return dict{"images": files}, nil
	case "SaveVideo":
		return dict{"images": []dict{r.s.save("output", prefix, ".mp4", film(printed(in["video"])))}, "animated": []bool{true}}, nil
	case "VHS_VideoCombine":
		kind := "output"
		format := printed(in["format"])
		end := ".mp4"
		p := in["images"].(pictures)
		b := film(digest(p.names...))
		if in["save_output"] == false {
			kind = "temp"
		}
		if format == "image/gif" {
			end = ".gif"
			b = still(p.names[0])
		}
		f := r.s.save(kind, prefix, end, b)
		f["format"] = format
		f["frame_rate"] = 8.0
		f["fullpath"] = "/opt/ComfyUI/output/" + f["filename"].(string)
		return dict{"gifs": []dict{f}}, nil
	case "SaveAudio":
		return dict{"audio": []dict{r.s.save("output", prefix, ".flac", sound(printed(in["audio"])))}}, nil
	case "SaveGLB":
		return dict{"3d": []dict{r.s.save("output", prefix, ".glb", shape(printed(in["mesh"])))}}, nil
	case "PreviewAny":
		return dict{"text": []string{printed(in["source"])}}, nil
	}
	return nil, errors.New("no such class: " + class)
}

// colours returns two colours that are derived from the name.
func colours(name string) color.Palette {
	b, _ := hex.DecodeString(digest(name))
	return color.Palette{color.RGBA{b[0], b[1], b[2], 255}, color.RGBA{b[3], b[4], b[5], 255}}
}

// paint returns a PNG file with a checkerboard whose colours depend on the
// name.
func paint(width, height int, name string) ([]byte, error) {
	m := image.NewPaletted(image.Rect(0, 0, width, height), colours(name))
	for y := range height {
		for x := range width {
			if (x/8+y/8)%2 == 0 {
				m.Pix[y*m.Stride+x] = 1
			}
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, m)
	return b.Bytes(), err
}

func still(name string) []byte {
	var b bytes.Buffer
	_ = gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, 4, 4), colours(name)), nil)
	return b.Bytes()
}

// film returns a minimal MP4 file: an ftyp box, and an mdat box with the
// digest of the name.
func film(name string) []byte {
	box := func(kind, body string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))) + kind + body
	}
	return []byte(box("ftyp", "isom\x00\x00\x02\x00isommp41") + box("mdat", digest(name)))
}

// sound returns a FLAC file without samples. Its checksum field is the digest
// of the name.
func sound(name string) []byte {
	sum, _ := hex.DecodeString(digest(name))
	b := []byte("fLaC\x80\x00\x00\x22\x10\x00\x10\x00\x00\x00\x00\x00\x00\x00\x0a\xc4\x42\xf0\x00\x00\x00\x00")
	return append(b, sum[:16]...)
}

// shape returns a GLB file without objects. Its generator field (glTF 2.0,
// section 4.4) contains the digest of the name.
func shape(name string) []byte {
	text := fmt.Sprintf(`{"asset":{"version":"2.0","generator":%q}}`, digest(name))
	for len(text)%4 != 0 {
		text += " "
	}
	b := []byte("glTF")
	b = binary.LittleEndian.AppendUint32(b, 2)
	b = binary.LittleEndian.AppendUint32(b, uint32(20+len(text)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(append(b, "JSON"...), text...)
}
