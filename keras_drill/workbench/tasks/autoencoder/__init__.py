"""The task of autoencoders, which reconstruct their input lines."""
