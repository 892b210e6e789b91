package a1111_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
)

// tensors are the shapes of a model's tensors, by name.
type tensors map[string][]int

// addLinear adds the weight and the bias of a layer: the number of outputs,
// then those of its inputs and, for convolutions, the sides of the kernel.
func (m tensors) addLinear(name string, shape ...int) {
	m[name+".weight"] = shape
	m[name+".bias"] = shape[:1]
}

// addResidual adds a residual block of the U-Net.
func (m tensors) addResidual(name string, in, out int) {
	m.addLinear(name+".in_layers.0", in)
	m.addLinear(name+".in_layers.2", out, in, 3, 3)
	m.addLinear(name+".emb_layers.1", out, 1280)
	m.addLinear(name+".out_layers.0", out)
	m.addLinear(name+".out_layers.3", out, out, 3, 3)
	if in != out {
		m.addLinear(name+".skip_connection", out, in, 1, 1)
	}
}

// addAttention adds an attention block of the U-Net, with a text of 768
// channels.
func (m tensors) addAttention(name string, n int) {
	m.addLinear(name+".norm", n)
	m.addLinear(name+".proj_in", n, n, 1, 1)
	m.addLinear(name+".proj_out", n, n, 1, 1)
	block := name + ".transformer_blocks.0"
	for part, in := range map[string]int{".attn1": n, ".attn2": 768} {
		m[block+part+".to_q.weight"] = []int{n, n}
		m[block+part+".to_k.weight"] = []int{n, in}
		m[block+part+".to_v.weight"] = []int{n, in}
		m.addLinear(block+part+".to_out.0", n, n)
	}
	for i := range 3 {
		m.addLinear(fmt.Sprintf("%s.norm%d", block, i+1), n)
	}
	m.addLinear(block+".ff.net.0.proj", 8*n, n)
	m.addLinear(block+".ff.net.2", n, 4*n)
}

// sdxsTensors returns the tensors of SDXS-512, the smallest model with a text
// encoder that stable-diffusion.cpp knows: 440 million numbers.
func sdxsTensors() tensors {
	m := tensors{}
	text := "cond_stage_model.transformer.text_model."
	m[text+"embeddings.token_embedding.weight"] = []int{49408, 768}
	m[text+"embeddings.position_embedding.weight"] = []int{77, 768}
	m.addLinear(text+"final_layer_norm", 768)
	for i := range 12 {
		layer := fmt.Sprintf("%sencoder.layers.%d.", text, i)
		m.addLinear(layer+"layer_norm1", 768)
		m.addLinear(layer+"layer_norm2", 768)
		m.addLinear(layer+"mlp.fc1", 3072, 768)
		m.addLinear(layer+"mlp.fc2", 768, 3072)
		for _, part := range []string{"q", "k", "v", "out"} {
			m.addLinear(layer+"self_attn."+part+"_proj", 768, 768)
		}
	}

	u := "model.diffusion_model."
	m.addLinear(u+"time_embed.0", 1280, 320)
	m.addLinear(u+"time_embed.2", 1280, 1280)
	m.addLinear(u+"input_blocks.0.0", 320, 4, 3, 3)
	m.addResidual(u+"input_blocks.1.0", 320, 320)
	m.addLinear(u+"input_blocks.3.0.op", 320, 320, 3, 3)
	m.addResidual(u+"input_blocks.4.0", 320, 640)
	m.addAttention(u+"input_blocks.4.1", 640)
	m.addLinear(u+"input_blocks.6.0.op", 640, 640, 3, 3)
	m.addResidual(u+"input_blocks.7.0", 640, 1280)
	m.addAttention(u+"input_blocks.7.1", 1280)
	m.addResidual(u+"output_blocks.0.0", 2560, 1280)
	m.addAttention(u+"output_blocks.0.1", 1280)
	m.addResidual(u+"output_blocks.1.0", 1920, 1280)
	m.addAttention(u+"output_blocks.1.1", 1280)
	m.addLinear(u+"output_blocks.2.1.conv", 1280, 1280, 3, 3)
	m.addResidual(u+"output_blocks.3.0", 1920, 640)
	m.addAttention(u+"output_blocks.3.1", 640)
	m.addResidual(u+"output_blocks.4.0", 960, 640)
	m.addAttention(u+"output_blocks.4.1", 640)
	m.addLinear(u+"output_blocks.5.2.conv", 640, 640, 3, 3)
	m.addResidual(u+"output_blocks.6.0", 960, 320)
	m.addResidual(u+"output_blocks.7.0", 640, 320)
	m.addLinear(u+"out.0", 320)
	m.addLinear(u+"out.2", 4, 320, 3, 3)
	return m
}

// taesdTensors returns the tensors of TAESD, a small autoencoder for pictures.
func taesdTensors() tensors {
	m := tensors{}
	addBlocks := func(half string, layers ...int) {
		for _, n := range layers {
			for _, conv := range []int{0, 2, 4} {
				m.addLinear(fmt.Sprintf("%s.layers.%d.conv.%d", half, n, conv), 64, 64, 3, 3)
			}
		}
	}
	addPlain := func(half string, layers ...int) { // convolutions without a bias
		for _, n := range layers {
			m[fmt.Sprintf("%s.layers.%d.weight", half, n)] = []int{64, 64, 3, 3}
		}
	}
	m.addLinear("encoder.layers.0", 64, 3, 3, 3)
	addBlocks("encoder", 1, 3, 4, 5, 7, 8, 9, 11, 12, 13)
	addPlain("encoder", 2, 6, 10)
	m.addLinear("encoder.layers.14", 4, 64, 3, 3)
	m.addLinear("decoder.layers.0", 64, 4, 3, 3)
	addBlocks("decoder", 2, 3, 4, 7, 8, 9, 12, 13, 14, 17)
	addPlain("decoder", 6, 11, 16)
	m.addLinear("decoder.layers.18", 3, 64, 3, 3)
	return m
}

// writeSafetensors writes a model with random weights to a file. The weights
// are small numbers of 16 bits.
func (m tensors) writeSafetensors(path string) error {
	type entry struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	head := map[string]entry{}
	size := 0
	for name, shape := range m {
		bytes := 2
		for _, side := range shape {
			bytes *= side
		}
		head[name] = entry{"F16", shape, [2]int{size, size + bytes}}
		size += bytes
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}

	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	if err := binary.Write(w, binary.LittleEndian, uint64(len(text))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	block := make([]byte, 0, 1<<20)
	for len(block) < cap(block) {
		const small = 0x2400 // the exponent of numbers from 1/64 to 1/32
		block = binary.LittleEndian.AppendUint16(block, small|uint16(random.Uint32())&0x83ff)
	}
	for left := size; left > 0; left -= len(block) {
		if _, err := w.Write(block[:min(left, len(block))]); err != nil {
			return err
		}
	}
	return w.Flush()
}
