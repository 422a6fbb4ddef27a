// All that is used of the package, so that the rest of it does not come along when this file is imported lazily.
export { GoogleLanguageModel, getGoogleLanguageModelEntry } from '@ai-sdk/google/internal'
