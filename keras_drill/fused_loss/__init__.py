"""The fused loss: losses, log-probabilities, ranks and gradients without the matrix `[N, V]`.

The tokens are cut into *tiles* and the labels (output embeddings) into *blocks*. The *walk* is the
loop that computes one tile after another, and in a tile one block after another.

The table shows one training step of an output layer, module by module. Shape letters: N tokens, K
contexts per token, M labels, S labels (columns of the score matrix) per target, d width. A tile has
T tokens and R = T * K rows. A block has B labels.

    inputs              contexts [N, K, d], labels [M, d], columns of the targets [N, S]
    losses              makes the walk differentiable: the forward pass computes the gradients
    devices             gives each device its tokens and labels (`placement`, `label_shard`)
    walk                one loop over tiles of tokens; per tile:
      token_tiles         cuts the tokens:        contexts [R, d], columns [R, S]
      label_blocks        cuts the labels:        labels [B, d], one block after another
      first_pass          logits [R, B] of a block, normalisers [R], losses [T]
      word_statistics     label smoothing and ranks, if requested
      teacher_pass        in distillation: the teacher's log-probabilities and a divergence
      second_pass         gradients of contexts [R, d] and of labels [M, d]
      accumulators        adds the results of the tile (`matrix_accumulator`: the labels' gradient)

`kept_exponentials`, `recomputed_products` and `frozen_labels` are three strategies for the passes.
The first keeps a tile's exponentials and reads the scores once. The second works for every score.
The third works for labels that need no gradient. `biased_scores` adds biases and soft caps.
Distillation (`divergences`, `teacher_tile`) always uses the second strategy.
"""
